#pragma once

#include <cstdlib>

/// Whether this program is built with a sanitizer, ten times slower: what only adds cases of the same kind takes
/// fewer. `./test deep` sets POSENC_DEEP and takes more of them again: see is_sample.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

/// Whether a sample will do of cases that differ in their numbers and not in the memory that they touch.
inline bool is_sample() { return kSanitized && std::getenv("POSENC_DEEP") == nullptr; }
