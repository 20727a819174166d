#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/flags/command.h"

namespace posenc::cli {

/// Who computes: the same for every verb, and no matter to the result.
struct EngineFlags {
  std::optional<std::int64_t> threads;
  std::string backend;
};
void add_engine_flags(Command verb, EngineFlags& flags);
/// Throws: Failure or Error for a thread count or backend that there is not.
void use_engine(const EngineFlags& flags);

/// How much output to make at once: enough to keep every core busy, little enough for memory and to notice a
/// signal within a moment. The reference backend is a hundred times slower.
std::int64_t block_bytes();

}  // namespace posenc::cli
