// The program without the lab, to keep the first build short.

#include "cli/system/failure.h"
#include "cli/verbs/verbs.h"

namespace posenc::cli {

Verb lab_verb(Command program) {
  Verb verb;
  verb.name = "lab";
  verb.summary = "train small Transformers and test published claims about positional encodings";
  verb.usage = "run PRESET | resume DIR | report DIR | train … | list";
  verb.details = "This build has no lab inside. ./run lab in the source tree builds it (CMake: POSENC_LAB=ON).";
  verb.examples = "posenc lab run smoke";
  verb.command = program.add_subcommand(verb.name);
  verb.checks_words = true;
  verb.run = []() -> int {
    throw Failure{kFilesFailed, "lab: this build has no lab inside (run ./run lab in the source tree to build it)"};
  };
  return verb;
}

}  // namespace posenc::cli
