#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "posenc/scheme.h"
#include "posenc/tensor.h"

namespace posenc {

/// Which angle was used, where the tensors can tell.
enum class AngleKind : std::uint8_t {
  kExact,
  kHfF32,            ///< float(p) · float(frequency)
  kGgmlF32,          ///< one ratio multiplied in from pair to pair
  kBf16Frequencies,  ///< frequencies rounded to bf16 first: a bug
  kBf16Positions,    ///< positions rounded to bf16 first: a bug
};
/// "exact", "hf-f32", "ggml-f32", "bf16-frequencies", "bf16-positions".
std::string_view name_of(AngleKind kind) noexcept;

/// A convention that may have made one tensor from another.
struct Convention {
  Scheme scheme = {};               ///< a Rope, Sinusoidal, Alibi or T5; its fields are what was found
  double magnitude = 1.0;           ///< measured; negative for a bias whose sign is flipped
  double input_factor = 1.0;        ///< what the tensor was multiplied by before something was added (√width)
  double position_factor = 1.0;     ///< what positions are multiplied by; 2: a rotation was applied twice
  std::int64_t first_position = 0;  ///< of the first token; where positions were given, how far they are off
  std::vector<std::int64_t> positions = {};  ///< [sequences, tokens] where they are not consecutive; else empty
  AngleKind numerics = AngleKind::kExact;
  bool is_numerics_sure = false;  ///< the tensors tell the angles apart
  bool is_scaling_sure = true;    ///< pairs that scaling slows rotate enough to be seen
  bool is_swapped = false;        ///< sine and cosine are exchanged
  bool is_reversed = false;       ///< the last token has the first position
  bool is_along_heads = false;    ///< positions count along the axis before the sequence: of heads, or the batch
  bool is_by_column = false;    ///< sine and cosine of a pair have frequencies of their own: column j for 2⌊j/2⌋
  bool is_up_to_query = false;  ///< of a bias: plus a constant for each query, which the softmax removes
  bool is_for_keys = false;     ///< xPos: as keys are rotated, not queries
  double residual = 1.0;  ///< root mean square of what it does not explain, over that of the change (after − before)
};

enum class Verdict : std::uint8_t {
  kSure,        ///< one convention reproduces every element to the precision of the type, and no rival does
  kLikely,      ///< the best reproduces them, but another does as well
  kUnchanged,   ///< the tensors are the same
  kUnknown,     ///< pairs rotate, but at frequencies of no known scheme: they are given as LongRoPE's divisors
  kNone,        ///< no convention known here reproduces the change
  kTooLittle,   ///< too few positions to tell
  kNoPosition,  ///< the change does not depend on position: a factor, a permutation, rounding …
};
/// "sure", "likely", "unchanged", "unknown-frequencies", "not-a-rotation", "too-little", "no-position".
std::string_view name_of(Verdict verdict) noexcept;

struct Diagnosis {
  Verdict verdict = Verdict::kNone;
  std::optional<Convention> best = {};
  std::vector<Convention> others = {};    ///< next best first, at most 4
  std::vector<std::string> remarks = {};  ///< what stands out, a sentence each
};

struct DiagnosisOptions {
  /// Of each token, where they are known; else the tokens are taken as consecutive, from a position to be found.
  /// With several axes [axes, sequence], and then they must be known.
  std::span<const std::int64_t> positions = {};
  int axes = 1;
};

/// Finds how `after` was made from `before`: both [..., sequence, features] of one shape, in any float type; or
/// scores
/// [..., heads, queries, keys] before and after a bias, where −infinity and the like is a mask. Where nothing
/// explains the change along the sequence, the axis before it is tried. Of long sequences and many heads a part is
/// looked at. Throws: Error for shapes that differ, integers, and positions that do not fit.
Diagnosis diagnose(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options = {});

}  // namespace posenc
