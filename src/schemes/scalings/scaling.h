#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "numerics/real.h"
#include "posenc/forms.h"
#include "posenc/schemes/rope_scaling.h"
#include "schemes/check.h"

// A scaling is written once, for any number type N. With N = Real it is exact. With N = float every operation is
// rounded to float32 in the order of Hugging Face's code, which gives the frequencies that models were trained with
// (hf-f32).

namespace posenc::schemes {

using numerics::Real;

/// Converts a Real to N, and N to the nearest.
template <class N> N as(const Real& value) {
  if constexpr (std::is_same_v<N, float>) {
    return numerics::nearest_float(value);
  } else {
    return value;
  }
}

/// base^(2i/dims) for each pair i: the inverse of its frequency.
template <class N> std::vector<N> periods(const Real& base, std::int64_t dims);

/// The input of a scaling.
template <class N> struct Spectrum {
  std::int64_t dims = 0;
  double base = 0;
  std::int64_t length = 0;  // tokens in the sequence; 0: not given

  std::int64_t pairs() const { return dims / 2; }
};

/// The result of a scaling.
template <class N> struct Scaled {
  std::vector<N> frequencies;   // radians per position, one per pair
  double magnitude = 1.0;       // of the rotated pair
  double softmax_factor = 1.0;  // on all scores
  Growth growth;
  // How ggml computes the same frequencies: a base, one factor for all, and the share of each pair that is exempt
  // from it. It divides by what these do not explain.
  Real base = 0;  // 0: the spectrum's
  Real scale = 1;
  std::vector<Real> kept;  // empty: none
};

/// base^(−2i/dims), unscaled.
template <class N> std::vector<N> inverse_periods(const Real& base, std::int64_t dims) {
  if constexpr (std::is_same_v<N, Real>) {
    return numerics::geometric_roots(base, dims / 2, dims / 2);  // avoids a division for each
  } else {
    std::vector<N> values = periods<N>(base, dims);
    for (N& value : values) value = N(1) / value;
    return values;
  }
}

void check_positive(std::string_view scaling, std::string_view field, double value);
void check_original_length(std::string_view scaling, std::int64_t original_length);
/// Throws: Error if the length is not given.
void need_length(std::string_view scaling, std::int64_t length);
/// base · factor^(d/(d−2)), which slows the slowest pair by factor and leaves the fastest unchanged.
Real stretched_base(std::string_view scaling, double base, const Real& factor, std::int64_t dims);

}  // namespace posenc::schemes

namespace posenc {

/// The frequencies of a spectrum under a scaling; each is defined in the file of its name.
/// Throws: Error with field, value and rule.
template <class S, class N> schemes::Scaled<N> scaled(const S& scaling, const schemes::Spectrum<N>& from);

}  // namespace posenc

/// At the end of each scaling's file: instantiates its formula for the two number types.
#define POSENC_SCALING(Type, formula)                                                                        \
  template <>                                                                                                \
  schemes::Scaled<schemes::Real> scaled(const Type& scaling, const schemes::Spectrum<schemes::Real>& from) { \
    return formula(scaling, from);                                                                           \
  }                                                                                                          \
  template <> schemes::Scaled<float> scaled(const Type& scaling, const schemes::Spectrum<float>& from) {     \
    return formula(scaling, from);                                                                           \
  }
