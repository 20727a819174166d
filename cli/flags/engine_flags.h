#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/flags/command.h"

namespace posenc::cli {

/// What computes: the same for every verb, without effect on the result.
struct EngineFlags {
  std::optional<std::int64_t> threads;
  std::string backend;
};
void add_engine_flags(Command verb, EngineFlags& flags);
/// Throws: Failure or Error for an invalid thread count or backend.
void use_engine(const EngineFlags& flags);

/// How much output to compute at once: enough to keep every core busy, little enough to save memory and to react to a
/// signal quickly. The reference backend is a hundred times slower.
std::int64_t block_bytes();

}  // namespace posenc::cli
