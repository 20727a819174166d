#pragma once

#include <optional>
#include <string>

#include "diagnosis/samples.h"

namespace posenc::diagnosis {

/// Identifies a change that is the same for every token, exactly: a factor, a constant, a permutation, rounding,
/// dropout, a normalisation. Empty: none of these.
std::optional<std::string> exact_change(const Samples& samples);

/// Identifies what may have happened if no position explains a change: one linear map for all tokens, noise.
struct Guess {
  std::string text;
  bool is_sure = false;  // it does not depend on position
};
Guess guess_change(const Samples& samples);

}  // namespace posenc::diagnosis
