#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "posenc/scheme.h"
#include "posenc/tensor.h"

namespace posenc {

/// How the angle was computed, if the tensors reveal it.
enum class AngleKind : std::uint8_t {
  kExact,
  kHfF32,            ///< float(p) · float(frequency)
  kGgmlF32,          ///< multiplied by one ratio from pair to pair
  kBf16Frequencies,  ///< frequencies rounded to bf16 first: a bug
  kBf16Positions,    ///< positions rounded to bf16 first: a bug
  kBf16Angles,       ///< positions, frequencies and their products in bf16: a bug
  kF16Frequencies,   ///< frequencies rounded to f16 first: a bug
  kF16Angles,        ///< positions, frequencies and their products in f16: a bug
};
/// "exact", "hf-f32", "ggml-f32", "bf16-frequencies", "bf16-positions", "bf16-angles", "f16-frequencies", "f16-angles".
std::string_view name_of(AngleKind kind) noexcept;

/// A convention that may have produced one tensor from another.
struct Convention {
  Scheme scheme = {};                        ///< a Rope, Sinusoidal, Alibi or T5 with the fields that were found
  double magnitude = 1.0;                    ///< measured; negative for a bias whose sign is flipped
  double input_factor = 1.0;                 ///< what the tensor was multiplied by before the addition (√width)
  double position_factor = 1.0;              ///< what positions are multiplied by; 2: a rotation was applied twice
  std::int64_t first_position = 0;           ///< position of the first token; if positions were given, their offset
  std::vector<std::int64_t> positions = {};  ///< [sequences, tokens] if they are not consecutive; otherwise empty
  AngleKind numerics = AngleKind::kExact;
  bool is_numerics_sure = false;  ///< the tensors distinguish the kinds of angles
  bool is_scaling_sure = true;    ///< the pairs that scaling slows down rotate enough to tell
  bool is_swapped = false;        ///< sine and cosine are swapped
  bool is_reversed = false;       ///< the last token has the first position
  bool is_along_heads = false;    ///< positions count along the axis before the sequence: heads or batch
  bool is_by_column = false;  ///< sine and cosine of a pair have different frequencies: column j instead of 2⌊j/2⌋
  bool is_up_to_query = false;  ///< for a bias: up to a constant per query, which the softmax removes
  bool is_for_keys = false;     ///< xPos: rotated as a key, not as a query
  double residual = 1.0;  ///< rms of what the convention does not explain, relative to the rms of after − before
};

enum class Verdict : std::uint8_t {
  kSure,        ///< one convention reproduces every element to the precision of the type, and no rival does
  kLikely,      ///< the best convention reproduces them, but so does another
  kUnchanged,   ///< the tensors are the same
  kUnknown,     ///< pairs rotate, but not at the frequencies of a known scheme; reported as LongRoPE divisors
  kNone,        ///< no known convention reproduces the change
  kTooLittle,   ///< too few positions to tell
  kNoPosition,  ///< the change does not depend on position: a factor, a permutation, rounding …
};
/// "sure", "likely", "unchanged", "unknown-frequencies", "not-a-rotation", "too-little", "no-position".
std::string_view name_of(Verdict verdict) noexcept;

struct Diagnosis {
  Verdict verdict = Verdict::kNone;
  std::optional<Convention> best = {};
  std::vector<Convention> others = {};    ///< the next best, at most 4
  std::vector<std::string> remarks = {};  ///< noteworthy findings, one sentence each
};

struct DiagnosisOptions {
  /// The positions of the tokens, if known; otherwise they are assumed to be consecutive, and the first is determined.
  /// With several axes, [axes, sequence]; they must then be given.
  std::span<const std::int64_t> positions = {};
  int axes = 1;
  /// What was meant, if known: preferred among conventions that explain the tensors equally well. Not owned.
  const Scheme* expected = nullptr;
};

/// Finds how `after` was produced from `before`. Both are [..., sequence, features], of the same shape and any
/// floating-point type, or scores [..., heads, queries, keys] before and after a bias, where −infinity and similar values
/// are a mask. If nothing explains the change along the sequence, the axis before it is tried. For long sequences and many
/// heads, only a part is examined.
/// Throws: Error for shapes that differ, integers, and positions that are invalid.
Diagnosis diagnose(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options = {});

}  // namespace posenc
