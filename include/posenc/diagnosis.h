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
  Scheme scheme = None{};           ///< a Rope or a Sinusoidal; its fields are what was found
  double magnitude = 1.0;           ///< measured
  std::int64_t first_position = 0;  ///< of the first token; where positions were given, how far they are off
  AngleKind numerics = AngleKind::kExact;
  bool is_numerics_sure = false;  ///< the tensors tell the angles apart
  bool is_scaling_sure = true;    ///< pairs that scaling slows rotate enough to be seen
  bool is_swapped = false;        ///< sine and cosine stand in each other's place
  double residual = 1.0;          ///< root mean square of what it does not explain, over that of the tensor
};

enum class Verdict : std::uint8_t {
  kSure,       ///< one convention explains every element to the precision of the type, and no other does
  kLikely,     ///< the best explains them, but another does as well
  kUnchanged,  ///< the tensors are the same
  kUnknown,    ///< rotated by pairs, but by frequencies of no known scheme: they are given as LongRoPE's divisors
  kNone,       ///< neither a rotation of pairs nor an addition of waves
  kTooLittle,  ///< too few positions to tell
};
/// "sure", "likely", "unchanged", "unknown-frequencies", "not-a-rotation", "too-little".
std::string_view name_of(Verdict verdict) noexcept;

struct Diagnosis {
  Verdict verdict = Verdict::kNone;
  std::optional<Convention> best = {};
  std::vector<Convention> others = {};    ///< next best first, at most 4
  std::vector<std::string> remarks = {};  ///< what a person would say of it, a sentence each
};

struct DiagnosisOptions {
  /// Of each token, where they are known; else the tokens are taken as consecutive, from a position to be found.
  /// With several axes [axes, sequence], and then they must be known.
  std::span<const std::int64_t> positions = {};
  int axes = 1;
};

/// Finds how `after` was made from `before`: both [..., sequence, features] of one shape, in any float type.
/// Of long sequences and many heads a part is looked at.
/// Throws: Error for shapes that differ, integers, and positions that do not fit.
Diagnosis diagnose(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options = {});

}  // namespace posenc
