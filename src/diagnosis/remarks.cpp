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

void on_rope(const Convention& best, bool are_known, std::vector<std::string>& remarks) {
  const Rope& rope = *std::get_if<Rope>(&best.scheme);
  if (rope.sign < 0) remarks.emplace_back("pairs turn clockwise; nearly every model turns them the other way");
  if (best.is_swapped)
    remarks.emplace_back("sine and cosine stand in each other's place: position 0 changes as well");
  if (are_known && best.first_position != 0) {
    remarks.push_back(fmt::format("positions are off by {}", best.first_position));
  }
  if (!are_known && best.first_position != 0) {
    remarks.push_back(fmt::format("the first token stands at position {}", best.first_position));
  }
  const bool is_plain = std::holds_alternative<NoScaling>(rope.scaling);
  for (const double usual : kUsualBases) {
    if (is_plain && is_power_of(rope.base, usual, 0.5) && rope.base != 1000.0) {
      remarks.push_back(fmt::format("base {} is the square root of {}: the exponent may have i where 2i belongs",
                                    rope.base, usual));
    }
    for (const double share : {0.25, 0.75}) {
      if (is_plain && is_power_of(rope.base, usual, share)) {
        remarks.push_back(
            fmt::format("base {} is {} to the power {}: the exponent may have the size of a head where "
                        "the {} features that turn belong",
                        rope.base, usual, share, rope.dims));
      }
    }
  }
  for (const NtkReading& reading : ntk_readings(rope.base, rope.dims, 1e-4)) {
    if (!is_plain) break;
    remarks.push_back(
        fmt::format("base {:.9g} is {} with ntk scaling by {}, or dynamic scaling that has come to this: the same "
                    "numbers",
                    rope.base, reading.usual, reading.factor));
  }
  if (best.numerics == AngleKind::kBf16Frequencies) {
    remarks.emplace_back("frequencies were rounded to bf16 before use: far positions are wrong");
  }
  if (best.numerics == AngleKind::kBf16Positions) {
    remarks.emplace_back("positions were rounded to bf16: above 256 neighbours share one");
  }
  const double natural = prepare(rope, {.length = 1}).magnitude;
  if (std::fabs(best.magnitude / natural - 1) > 5e-3) {
    remarks.push_back(fmt::format("the magnitude is {:.6g}, where this scaling has {:.6g}", best.magnitude, natural));
  }
}

// What a LongRoPE config would have as short_factor or long_factor.
void on_divisors(const Diagnosis& diagnosis, std::vector<std::string>& remarks) {
  const auto* const rope = diagnosis.best ? std::get_if<Rope>(&diagnosis.best->scheme) : nullptr;
  const auto* const scaling = rope == nullptr ? nullptr : std::get_if<LongropeScaling>(&rope->scaling);
  if (scaling == nullptr) return;
  const auto [least, most] = std::minmax_element(scaling->short_factors.begin(), scaling->short_factors.end());
  remarks.push_back(
      fmt::format("measured against base {}, frequencies are divided by {:.4g} to {:.4g}: compare the list with "
                  "short_factor and long_factor of a LongRoPE config",
                  rope->base, *least, *most));
}

}  // namespace

std::vector<std::string> remarks_on(const Diagnosis& diagnosis, bool are_positions_known) {
  std::vector<std::string> remarks;
  switch (diagnosis.verdict) {
    case Verdict::kNone:
      remarks.emplace_back("not a rotation: no pairing of features turns steadily from token to token");
      break;
    case Verdict::kUnknown:
      remarks.emplace_back("pairs turn steadily, but their frequencies are those of no scheme that is known here");
      break;
    case Verdict::kLikely:
      remarks.emplace_back(
          "other conventions explain these tensors as well; more or later positions, or float32, "
          "would tell");
      break;
    default:
      break;
  }
  if (diagnosis.verdict == Verdict::kUnknown) {
    on_divisors(diagnosis, remarks);
    return remarks;
  }
  if (diagnosis.best && std::holds_alternative<Rope>(diagnosis.best->scheme)) {
    on_rope(*diagnosis.best, are_positions_known, remarks);
  } else if (diagnosis.best && diagnosis.best->first_position != 0) {
    remarks.push_back(fmt::format("the first token has the vector of position {}", diagnosis.best->first_position));
  }
  return remarks;
}

}  // namespace posenc::diagnosis
