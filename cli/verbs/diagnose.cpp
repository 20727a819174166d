#include <memory>
#include <string>

#include "cli/arrays/two_tensors.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {

Verb diagnose_verb(Command program) {
  Verb verb;
  verb.name = "diagnose";
  verb.summary = "which convention made one tensor from another";
  verb.usage = "--before A --after B [--positions P] [--json]";
  verb.details =
      "A holds queries or keys before rotary position was applied, B the same after it; or tokens before and after "
      "sinusoids were added. Finds pair layout, direction, which features turn, base, scaling, magnitude, first "
      "position and the precision of the angle. One head and 16 tokens are enough. Exits with 1 where nothing known "
      "fits.";
  verb.examples =
      "posenc diagnose --before q.npy --after q_rotated.npy\n"
      "posenc diagnose --before q.npy --after q_rotated.npy --positions 0:16 --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<TwoTensorFlags>();
  add_two_tensor_flags(verb.command, *flags);
  verb.run = [flags, verb] {
    refuse_leftovers(verb.command);
    const TwoTensors two = read_two_tensors(*flags, verb.name);
    const Diagnosis found = diagnose(two.before_view, two.after_view, {.positions = two.positions, .axes = two.axes});
    print(flags->json ? dump_json(diagnosis_json(found), 2) + "\n" : diagnosis_text(found, !two.positions.empty()));
    return found.best && found.verdict != Verdict::kUnknown ? kDone : kNo;
  };
  return verb;
}

}  // namespace posenc::cli
