#include <memory>

#include "cli/arrays/two_tensors.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/verbs/verbs.h"
#include "posenc/report_json.h"

namespace posenc::cli {

Verb diagnose_verb(Command program) {
  Verb verb;
  verb.name = "diagnose";
  verb.summary = "identify the convention (or bug) from a tensor before and after";
  verb.usage = "BEFORE AFTER [--positions P] [--json]";
  verb.details =
      "BEFORE holds queries or keys before RoPE, AFTER the same after RoPE; or tokens before and after sinusoids "
      "were added; or scores [heads, queries, keys] before and after a bias (ALiBi, T5). Finds pair layout, "
      "direction, rotary dimensions, base, scaling, magnitude, positions and the precision of the angle, and names "
      "common bugs: applied twice, along the wrong axis, reversed, sine and cosine swapped, a wrong exponent. One "
      "head and 16 tokens are enough. Exits with 1 if no known convention reproduces the change.";
  verb.examples =
      "posenc diagnose q.npy q_rotated.npy\n"
      "posenc diagnose q.npy q_rotated.npy --positions 0:16 --json\n"
      "posenc diagnose --before scores.npy --after scores_biased.npy";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<TwoTensorFlags>();
  add_two_tensor_flags(verb.command, *flags);
  verb.run = [flags, verb] {
    place_paths(*flags, verb.name);
    const TwoTensors two = read_two_tensors(*flags, verb.name);
    const Diagnosis found = diagnose(two.before_view, two.after_view, {.positions = two.positions, .axes = two.axes});
    print(flags->json ? dump_json(json_of(found), 2) + "\n" : diagnosis_text(found, !two.positions.empty()));
    return found.best && found.verdict != Verdict::kUnknown ? kDone : kNo;
  };
  return verb;
}

}  // namespace posenc::cli
