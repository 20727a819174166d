// posenc_bench JOB …, which `./run bench` builds and starts. It is the verb of a program of its own, with the help and the
// messages of posenc's verbs: it measures posenc, and users do not need it.

#include "benchmarks/bench.h"
#include "cli/flags/arguments.h"
#include "cli/flags/colour_flag.h"
#include "cli/system/failure.h"
#include "cli/system/run_main.h"
#include "cli/system/streams.h"

namespace posenc::bench {
namespace {

int run(std::vector<std::string> arguments) {
  cli::take_colour(arguments);
  cli::Parser parser("posenc_bench", "-h,--help");
  cli::Command program = parser.program();
  program.allow_extras();  // rejected below, with a better message
  const cli::Verb verb = bench_verb(program);
  arguments.insert(arguments.begin(), std::string(verb.name));
  if (!parser.parse(arguments)) {
    cli::print(cli::help_of(verb));
    return cli::kDone;
  }
  cli::refuse_leftovers(verb.command);
  return verb.run();
}

}  // namespace
}  // namespace posenc::bench

int main(int count, char** words) { return posenc::cli::run_main(count, words, posenc::bench::run); }
