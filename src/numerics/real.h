#pragma once

#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "posenc/frequency.h"

namespace posenc::numerics {

/// A binary number of 448 bits, for computing frequencies once: the Frequency receives 256 of them, 100 may be before
/// the binary point, and the rest covers the rounding of a few hundred operations. Sums, products and quotients are
/// rounded to nearest, so results that fit in 448 bits are exact; exp, log and pow are accurate to 416.
class Real {
 public:
  static constexpr int kWords = 7, kBits = 64 * kWords;

  Real() = default;
  template <class T>
  requires std::integral<T> || std::floating_point<T> Real(
      T value) {  // NOLINT(google-explicit-constructor): mixed arithmetic reads as it would with built-in numbers
    if constexpr (std::floating_point<T>) {
      make(static_cast<double>(value));
    } else if constexpr (std::is_signed_v<T>) {
      make(std::int64_t{value});
    } else {
      make(std::uint64_t{value});
    }
  }
  /// words · 2^(exponent − 448), lowest word first; the highest bit must be set.
  Real(const std::array<std::uint64_t, kWords>& words, std::int64_t exponent)
      : words_(words), exponent_(exponent), kind_(Kind::kFinite) {}

  Real& operator+=(const Real& other);
  Real& operator-=(const Real& other);
  Real& operator*=(const Real& other);
  Real& operator/=(const Real& other);
  Real operator-() const;

  /// The nearest float or double; integers are truncated towards zero and clamped to their range.
  template <class T> T convert_to() const;

  friend Real operator+(Real a, const Real& b) { return a += b; }
  friend Real operator-(Real a, const Real& b) { return a -= b; }
  friend Real operator*(Real a, const Real& b) { return a *= b; }
  friend Real operator/(Real a, const Real& b) { return a /= b; }
  friend bool operator==(const Real& a, const Real& b) { return (a <=> b) == std::partial_ordering::equivalent; }
  friend std::partial_ordering operator<=>(const Real& a, const Real& b);

 private:
  friend struct RealAccess;
  enum class Kind : std::uint8_t { kZero, kFinite, kInfinite, kNan };
  void make(double value);
  void make(std::int64_t value);
  void make(std::uint64_t value);

  // |x| = words · 2^(exponent − 448), from 2^(exponent − 1) up to 2^exponent; the highest bit is set if x is finite.
  std::array<std::uint64_t, kWords> words_ = {};
  std::int64_t exponent_ = 0;
  bool negative_ = false;
  Kind kind_ = Kind::kZero;
};

template <> float Real::convert_to() const;
template <> double Real::convert_to() const;
template <> std::int64_t Real::convert_to() const;
template <> std::uint64_t Real::convert_to() const;

Real abs(const Real& x);
Real floor(const Real& x);
Real ceil(const Real& x);
Real sqrt(const Real& x);
Real exp(const Real& x);
Real log(const Real& x);
Real pow(const Real& x, const Real& y);
Real ldexp(const Real& x, int exponent);

/// The frequency of `radians` per position, rounded once to 2^-256 turns.
Frequency frequency_from(const Real& radians);

/// The first `count` terms of a geometric sequence that falls from 1: ratio^0, ratio^1 … with ratio = base^(−step).
/// Every published spacing of frequencies is one of these.
std::vector<Real> geometric(const Real& base, const Real& step, std::int64_t count);

/// The same with ratio = base^(−1/n): several times as fast, because a root needs no logarithm.
std::vector<Real> geometric_roots(const Real& base, std::int64_t n, std::int64_t count);

const Real& two_pi();

/// The nearest float32.
float nearest_float(const Real& value);

}  // namespace posenc::numerics
