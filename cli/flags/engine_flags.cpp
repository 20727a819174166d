#include "cli/flags/engine_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/system/failure.h"
#include "posenc/backend.h"

namespace posenc::cli {
void add_engine_flags(Command verb, EngineFlags& flags) {
  constexpr std::int64_t kMostThreads = 1024;
  verb.add_integer("--threads", flags.threads, {1, kMostThreads},
                   "number of threads (default: all cores); results do not depend on it");
  verb.add_option("--backend", flags.backend,
                  "backend: cpu, reference or cuda (default cpu); see posenc list --backends")
      .type_name("NAME")
      .choices({"cpu", "reference", "cuda"});
}

void use_engine(const EngineFlags& flags) {
  if (flags.threads) set_threads(static_cast<int>(*flags.threads));
  if (flags.backend.empty()) return;
  const std::vector<std::string_view> names = backends();
  if (std::find(names.begin(), names.end(), flags.backend) == names.end()) {
    refuse(flags.backend == "cuda"
               ? fmt::format("--backend: cuda cannot run here: {}", why_absent("cuda"))
               : fmt::format("--backend: '{}' is unknown (one of {})", flags.backend, fmt::join(names, ", ")));
  }
  force_backend(flags.backend);
}

std::int64_t block_bytes() {
  // A call of cuda copies a block there and back and waits, so it gets the largest.
  return std::int64_t{1} << (backend() == "reference" ? 18 : backend() == "cuda" ? 27 : 23);
}

}  // namespace posenc::cli
