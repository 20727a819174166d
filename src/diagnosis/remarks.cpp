#include "diagnosis/remarks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnosis/candidates.h"

namespace posenc::diagnosis {
namespace {

bool is_power_of(double base, double usual, double exponent) {
  return std::fabs(std::pow(usual, exponent) / base - 1) < 5e-3;
}

// If tokens are not consecutive: the pattern, in the first sequence that has one.
void on_pattern(const std::vector<std::int64_t>& positions, std::vector<std::string>& remarks) {
  std::size_t restarts = 0, held = 0;
  for (std::size_t i = 1; i < positions.size(); ++i) {
    if (positions[i] == positions[i - 1]) ++held;
    if (positions[i] != positions[i - 1] && positions[i] != positions[i - 1] + 1) ++restarts;
  }
  std::size_t front = 1;
  while (front < positions.size() && positions[front] == positions[0]) ++front;
  const bool starts_again = front < positions.size() && positions[front] != positions[0] + 1;
  if (front > 1 || (starts_again && restarts == 1 && front == 1)) {
    remarks.push_back(fmt::format("left padding: the first {} tokens have position {}, the next has {}", front,
                                  positions[0], front < positions.size() ? positions[front] : positions[0]));
  } else if (restarts > 0) {
    remarks.emplace_back("positions start again within the tensor: packed sequences, or padding in some of them");
  } else if (held > 0) {
    remarks.emplace_back("the last tokens share one position: right padding, or positions that are clamped");
  }
}

// Which mistake with a common base gives which base.
void on_sinusoids(const Convention& best, std::vector<std::string>& remarks) {
  const Sinusoidal& waves = *std::get_if<Sinusoidal>(&best.scheme);
  const auto is_near = [&](double base) { return std::fabs(waves.base / base - 1) < 5e-3; };
  if (best.is_swapped) remarks.emplace_back("sine and cosine are swapped: even columns contain cosines");
  if (best.is_by_column) {
    remarks.emplace_back(
        "sine and cosine of a pair have different frequencies: the exponent has the column j where 2⌊j/2⌋ belongs");
  } else if (is_near(100)) {
    remarks.emplace_back("base 100 is the square root of 10000: the exponent may have i where 2i belongs");
  } else if (is_near(1e8)) {
    remarks.emplace_back("base 1e8 is the square of 10000: the exponent may have 4i where 2i belongs");
  } else if (is_near(std::exp(4.0))) {
    remarks.emplace_back("base 54.6 is e^4 = e^log10(10000): log10 may have been used where ln belongs");
  } else if (is_near(std::pow(10.0, std::log(10000.0)))) {
    remarks.emplace_back("base 1.6e9 is 10^ln(10000): ln may have been used where log10 belongs");
  } else if (!is_near(10000)) {
    remarks.push_back(fmt::format("base {:.6g}; nearly every model uses 10000", waves.base));
  }
  if (std::fabs(best.position_factor * 180 / 3.14159265358979 - 1) < 5e-3) {
    remarks.emplace_back("angles are multiplied by π/180: radians were taken for degrees");
  } else if (std::fabs(best.position_factor / 180 * 3.14159265358979 - 1) < 5e-3) {
    remarks.emplace_back("angles are multiplied by 180/π: degrees were taken for radians");
  } else if (best.position_factor != 1) {
    remarks.push_back(fmt::format("positions are multiplied by {:.6g}", best.position_factor));
  }
  const double root = std::sqrt(static_cast<double>(waves.width));
  if (std::fabs(best.input_factor / root - 1) < 5e-3) {
    remarks.push_back(
        fmt::format("tokens are multiplied by √{} = {:.6g} before the addition, as in the original Transformer",
                    waves.width, root));
  } else if (best.input_factor != 1) {
    remarks.push_back(fmt::format("tokens are multiplied by {:.6g} before the addition", best.input_factor));
  }
}

void on_positions(const Convention& best, bool has_known_positions, bool has_pattern,
                  std::vector<std::string>& remarks) {
  if (best.is_along_heads) {
    remarks.emplace_back(
        "positions count along the axis before the sequence (heads or batch): these two axes are swapped, in the "
        "code or in the file (--axes says which is which)");
  }
  if (best.is_reversed) remarks.emplace_back("positions are reversed: the last token has the first position");
  if (best.position_factor == 2 && std::holds_alternative<Rope>(best.scheme)) {
    remarks.emplace_back("every angle is doubled: the rotation was applied twice");
  }
  if (!best.positions.empty()) {
    if (!has_pattern) on_pattern(best.positions, remarks);
    return;
  }
  if (best.first_position == 0) return;
  remarks.push_back(has_known_positions ? fmt::format("positions are off by {}", best.first_position)
                                        : fmt::format("the first token has position {}", best.first_position));
}

void on_rope(const Convention& best, std::vector<std::string>& remarks) {
  const Rope& rope = *std::get_if<Rope>(&best.scheme);
  if (rope.sign < 0) remarks.emplace_back("pairs rotate clockwise; nearly every model rotates counter-clockwise");
  if (best.is_swapped) remarks.emplace_back("sine and cosine are swapped: position 0 changes as well");
  if (best.is_for_keys) remarks.emplace_back("pairs grow with position, as xPos does for keys");
  const bool is_plain = std::holds_alternative<NoScaling>(*rope.scaling);
  for (const double usual : kUsualBases) {
    if (is_plain && is_power_of(rope.base, usual, 0.5) && rope.base != 1000.0) {
      remarks.push_back(fmt::format("base {} is the square root of {}: the exponent may have i where 2i belongs",
                                    rope.base, usual));
    }
    for (const double share : {0.25, 0.75}) {
      if (is_plain && is_power_of(rope.base, usual, share)) {
        remarks.push_back(
            fmt::format("base {} is {} to the power {}: the exponent may have the size of a head where "
                        "the {} rotary dimensions belong",
                        rope.base, usual, share, rope.dims));
      }
    }
  }
  for (const NtkReading& reading : ntk_readings(rope.base, rope.dims, 1e-4)) {
    if (!is_plain) break;
    remarks.push_back(
        fmt::format("base {:.9g} is {} with ntk scaling by {}, or dynamic scaling at this length; the two cannot "
                    "be told apart",
                    rope.base, reading.usual, reading.factor));
  }
  if (best.numerics == AngleKind::kBf16Frequencies) {
    remarks.emplace_back("frequencies were rounded to bf16 before use: angles at far positions are wrong");
  }
  if (best.numerics == AngleKind::kBf16Positions) {
    remarks.emplace_back("positions were rounded to bf16: above 256, adjacent tokens share one");
  }
  if (best.numerics == AngleKind::kF16Frequencies) {
    remarks.emplace_back("frequencies were rounded to f16 before use: angles at far positions are wrong");
  }
  if (best.numerics == AngleKind::kBf16Angles || best.numerics == AngleKind::kF16Angles) {
    remarks.push_back(fmt::format("angles, position times frequency, were rounded to {}",
                                  best.numerics == AngleKind::kF16Angles ? "f16" : "bf16"));
  }
  const double natural = std::pow(prepare(rope, {.length = 1}).magnitude, best.position_factor);
  if (std::fabs(best.magnitude / natural - 1) > 5e-3) {
    remarks.push_back(fmt::format("magnitude: this scaling has {:.6g}, got {:.6g}", natural, best.magnitude));
  }
}

// The short_factor or long_factor of an equivalent LongRoPE config.
void on_divisors(const Diagnosis& diagnosis, std::vector<std::string>& remarks) {
  const auto* const rope = diagnosis.best ? std::get_if<Rope>(&diagnosis.best->scheme) : nullptr;
  const auto* const scaling = rope == nullptr ? nullptr : std::get_if<LongropeScaling>(&*rope->scaling);
  if (scaling == nullptr) return;
  const auto [least, most] = std::minmax_element(scaling->short_factors.begin(), scaling->short_factors.end());
  remarks.push_back(
      fmt::format("measured against base {}, frequencies are divided by {:.4g} to {:.4g}: compare the list with "
                  "short_factor and long_factor of a LongRoPE config",
                  rope->base, *least, *most));
}

}  // namespace

std::vector<std::string> remarks_on(const Diagnosis& diagnosis, bool are_positions_known, bool has_pattern) {
  std::vector<std::string> remarks;
  switch (diagnosis.verdict) {
    case Verdict::kNone:
      remarks.emplace_back(
          "not a rotation: no pairing of features rotates steadily from token to token; and no sinusoids were added");
      return remarks;
    case Verdict::kTooLittle:
      remarks.emplace_back("at least four tokens at different positions are needed, or two of four heads");
      return remarks;
    case Verdict::kUnknown:
      remarks.emplace_back("pairs rotate steadily, but their frequencies are those of no scheme known here");
      on_divisors(diagnosis, remarks);
      return remarks;
    case Verdict::kLikely:
      remarks.emplace_back(
          diagnosis.others.empty()
              ? "a part of the change is not explained: see the residual"
              : "other conventions explain these tensors about as well; more or later positions, or float32, would "
                "tell them apart");
      break;
    default:
      break;
  }
  if (!diagnosis.best) return remarks;
  on_positions(*diagnosis.best, are_positions_known, has_pattern, remarks);
  if (std::holds_alternative<Rope>(diagnosis.best->scheme)) on_rope(*diagnosis.best, remarks);
  if (std::holds_alternative<Sinusoidal>(diagnosis.best->scheme)) on_sinusoids(*diagnosis.best, remarks);
  return remarks;
}

}  // namespace posenc::diagnosis
