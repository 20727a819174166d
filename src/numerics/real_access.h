#pragma once

#include "numerics/real.h"

namespace posenc::numerics {

/// The only access to the internals of a Real.
struct RealAccess {
  using Kind = Real::Kind;
  using Words = std::array<std::uint64_t, Real::kWords>;

  static Kind kind(const Real& x) { return x.kind_; }
  static bool negative(const Real& x) { return x.negative_; }
  static std::int64_t exponent(const Real& x) { return x.exponent_; }
  static const Words& words(const Real& x) { return x.words_; }
  static bool is_finite(const Real& x) { return x.kind_ == Kind::kZero || x.kind_ == Kind::kFinite; }

  static Real special(Kind kind, bool negative = false) {
    Real x;
    x.kind_ = kind;
    x.negative_ = negative;
    return x;
  }
  static Real with_sign(Real x, bool negative) {
    x.negative_ = negative && x.kind_ != Kind::kZero;
    return x;
  }
  static Real with_exponent(Real x, std::int64_t exponent) {
    x.exponent_ = exponent;
    return x;
  }
};

}  // namespace posenc::numerics
