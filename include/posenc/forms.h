#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "posenc/frequency.h"
#include "posenc/tensor.h"

namespace posenc {

/// Which angle is meant. `kExact` is the mathematical one. The others repeat, bit for bit, the float32
/// arithmetic that models were trained with, and then take the correctly rounded sine of that angle.
enum class Numerics : std::uint8_t { kExact, kHfF32, kGgmlF32 };

/// "exact", "hf-f32", "ggml-f32".
std::string_view name_of(Numerics numerics) noexcept;
/// Throws: Error for a name that is none of the above.
Numerics numerics_from(std::string_view name);

/// Angles in float32 radians, as engines make them, one factor for each wave. Empty: the exact angle is used.
///   chained = false:  angle i = float(p) · factors[i]                                    (Hugging Face)
///   chained = true:   angle i = ((float(p) · factors[0]) · factors[1]) … · factors[i],
///                     begun anew where the wave's axis is not that of the wave before    (ggml)
struct Float32Angles {
  std::vector<float> factors;
  bool chained = false;
  bool operator==(const Float32Angles&) const = default;
};

/// One oscillation, driven by one axis of the position.
struct Wave {
  Frequency frequency;
  std::uint8_t axis = 0;
  bool operator==(const Wave&) const = default;
};

/// A column of a table of waves: sin(2π(position · frequency + quarter / 4)).
/// quarter 0 is the sine, 1 the cosine. A wave of frequency 0 with quarter 0 is a column of zeros.
struct WaveColumn {
  std::int32_t wave = 0;
  std::uint8_t quarter = 0;
  bool operator==(const WaveColumn&) const = default;
};

/// Sines and cosines: every sinusoidal table there is, in any order of columns, over any axes.
struct Waves {
  std::vector<Wave> waves;
  std::vector<WaveColumn> columns;
  double scale = 1.0;  // multiplies every value before its one rounding
  int axes = 1;
  Float32Angles float32_angles;
};

/// Rows of a table that somebody else owns: learned positions, or any ready-made table.
struct Rows {
  ConstTensorView table;    // [rows, width]
  std::int64_t offset = 0;  // position p reads row p + offset
};

/// Straight lines: column j is start[j] + position · step[j], in double.
struct Lines {
  std::vector<double> start;
  std::vector<double> step;
};

/// The form of a scheme that adds a vector to every token.
struct Addition {
  std::int64_t width = 0;
  std::variant<Waves, Rows, Lines> source;
};

/// The form of a scheme that does nothing.
struct Nothing {};

/// What a scheme becomes, and all that kernels know of it.
using Form = std::variant<Nothing, Addition>;

}  // namespace posenc
