#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "posenc/frequency.h"

namespace posenc::numerics {

/// A number of 400 bits, for making frequencies once: 256 of them reach the Frequency, 100 may stand before the
/// binary point, and what remains covers the rounding of a few hundred operations.
/// Boost.Multiprecision does the work, in real.cpp alone: with its templates in sight, a file that divides two of
/// these took 25 seconds to compile.
class Real {
 public:
  Real() : Real(0.0) {}
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
  Real(const Real& other);
  Real& operator=(const Real& other);
  ~Real() = default;

  Real& operator+=(const Real& other);
  Real& operator-=(const Real& other);
  Real& operator*=(const Real& other);
  Real& operator/=(const Real& other);
  Real operator-() const;

  /// The nearest float or double; integers are cut towards zero.
  template <class T> T convert_to() const;

  friend Real operator+(Real a, const Real& b) { return a += b; }
  friend Real operator-(Real a, const Real& b) { return a -= b; }
  friend Real operator*(Real a, const Real& b) { return a *= b; }
  friend Real operator/(Real a, const Real& b) { return a /= b; }
  friend bool operator==(const Real& a, const Real& b);
  friend std::partial_ordering operator<=>(const Real& a, const Real& b);

 private:
  friend struct RealAccess;
  void make(double value);
  void make(std::int64_t value);
  void make(std::uint64_t value);

  alignas(16) std::byte storage_[96];
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

/// The k-th of `count` numbers that fall geometrically from 1: ratio^0, ratio^1 … with ratio = base^(−step).
/// Every published spacing of frequencies is one of these.
std::vector<Real> geometric(const Real& base, const Real& step, std::int64_t count);

/// The same with ratio = base^(−1/n): several times as fast, because a root needs no logarithm.
std::vector<Real> geometric_roots(const Real& base, std::int64_t n, std::int64_t count);

const Real& two_pi();

/// The nearest float32.
float nearest_float(const Real& value);

}  // namespace posenc::numerics
