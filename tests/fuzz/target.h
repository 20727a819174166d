#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "posenc/error.h"

/// Called with every input. What is not a crash, a hang or too much memory is fine, unless the target traps.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace posenc {

/// Reads the bytes, and takes an Error for an answer.
template <class Read> int outcome_of(const std::uint8_t* data, std::size_t size, const Read& read) {
  try {
    read(std::span(reinterpret_cast<const std::byte*>(data), size));
  } catch (const Error&) {}
  return 0;
}

/// What must hold for every input that was accepted.
inline void require(bool holds) {
  if (!holds) __builtin_trap();
}

}  // namespace posenc
