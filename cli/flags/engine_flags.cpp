#include "cli/flags/engine_flags.h"

#include <fmt/format.h>

#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"
#include "posenc/backend.h"

namespace posenc::cli {
namespace {

constexpr int kMostThreads = 1024;

}  // namespace

void add_engine_flags(Command verb, EngineFlags& flags) {
  verb.add_option("--threads", flags.threads, "how many threads (default: all cores); results never depend on it")
      .type_name("N");
  verb.add_option(
          "--backend", flags.backend,
          "who computes: cpu, reference or cuda (default cpu); posenc list --backends says which can run here")
      .type_name("NAME");
}

void use_engine(const EngineFlags& flags) {
  if (!flags.threads.empty()) {
    const std::int64_t count = integer_from(flags.threads, "--threads");
    if (count < 1 || count > kMostThreads) {
      refuse(fmt::format("--threads: {} is not from 1 to {}", count, kMostThreads));
    }
    set_threads(static_cast<int>(count));
  }
  if (!flags.backend.empty()) force_backend(flags.backend);
}

std::int64_t block_bytes() { return std::int64_t{1} << (backend() == "reference" ? 18 : 23); }

}  // namespace posenc::cli
