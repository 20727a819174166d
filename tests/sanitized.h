#pragma once

#include <cstdlib>

/// Whether this program is built with a sanitizer, ten times slower: what only adds cases of the same kind takes
/// fewer. `./test rest` sets POSENC_ALL_CASES and takes more of them again: see is_sample. Where it sets POSENC_EMULATED,
/// the program runs under an emulator, fifty times slower.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define POSENC_HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POSENC_HAS_SANITIZER 1
#endif
#endif
#if !defined(POSENC_HAS_SANITIZER)
#define POSENC_HAS_SANITIZER 0
#endif
inline constexpr bool kSanitized = POSENC_HAS_SANITIZER != 0;

/// Whether a sample will do of cases that differ in their numbers and not in the memory that they touch.
inline bool is_sample() {
  return (kSanitized && std::getenv("POSENC_ALL_CASES") == nullptr) || std::getenv("POSENC_EMULATED") != nullptr;
}
