#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/prepare_options.h"
#include "posenc/schemes/choice.h"

namespace posenc {

/// How a score falls with distance; a is the head's amplitude, r its rate.
enum class KerpleKernel : std::uint8_t {
  kLog,    ///< −a · ln(1 + r·|n − m|)
  kPower,  ///< −a · |n − m|^r, r up to 2
};
template <> struct ChoiceNames<KerpleKernel> {
  static constexpr std::array<std::string_view, 2> value = {"log", "power"};
};

/// A kernel of the distance with two trained numbers per head. ALiBi is the power kernel with rate 1.
///
///   bias(h, m, n) = −amplitude_h · ln(1 + rate_h · |n − m|)   or   −amplitude_h · |n − m|^rate_h
///
/// Chi et al., 2022, "KERPLE: Kernelized Relative Positional Embedding for Length Extrapolation".
struct Kerple {
  static constexpr std::string_view name = "kerple";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score - a_h*ln(1 + r_h*|n-m|), or - a_h*|n-m|^r_h";
  static constexpr std::string_view used_by = "research on length extrapolation";

  KerpleKernel kernel = KerpleKernel::kLog;
  std::vector<double> amplitudes = list_of(1.0);
  std::vector<double> rates = list_of(1.0);

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("kernel", &Kerple::kernel, "how the score falls with distance");
    visit("amplitudes", &Kerple::amplitudes, "a_h, one per head, positive (default 1)");
    visit("rates", &Kerple::rates, "r_h, one per head, positive; power: at most 2 (default 1)");
  }
  LengthNeed needs_length() const { return LengthNeed::kDistances; }
  bool operator==(const Kerple&) const = default;
};

/// Computes a table of the distances 0 … length − 1; larger ones are rejected. Needs a length.
/// Error: within 0.501 ulp of double, bit-identical on every machine.
/// Range: as many rates as amplitudes, 1 to 65536, all above 0 and finite; length 1 to 2^20.
Bias prepare(const Kerple& scheme, const PrepareOptions& options = {});

struct KerpleGradient {
  std::vector<double> amplitudes, rates;  // one for each head
};
/// The gradient of the parameters, computed from that of the table, as bias_backward returns it for the form of this scheme.
/// d_table is [length, heads], dense.
/// Throws: Error if its size is not a multiple of the number of heads.
KerpleGradient backward(const Kerple& scheme, std::span<const double> d_table);

}  // namespace posenc
