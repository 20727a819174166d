#include "numerics/real.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "numerics/fixed.h"
#include "numerics/real_access.h"

namespace posenc::numerics {
namespace {

using Access = RealAccess;
using RealKind = RealAccess::Kind;
constexpr std::size_t kRealWords = Real::kWords;

/// A magnitude with one extra word, the lowest: the bits below the last decide the rounding.
using Guarded = std::array<std::uint64_t, kRealWords + 1>;

Real not_a_number() { return Access::special(RealKind::kNan); }

// Rounds to nearest, ties away from zero. The highest bit is set.
Real rounded_size(const Guarded& size, std::int64_t exponent) {
  Access::Words words{};
  std::uint64_t carry = size[0] >> 63;
  for (std::size_t i = 0; i < kRealWords; ++i) {
    words[i] = size[i + 1] + carry;
    carry = carry != 0 && words[i] == 0 ? 1 : 0;
  }
  if (carry != 0) {  // all ones became 1000…
    words.back() = std::uint64_t{1} << 63;
    ++exponent;
  }
  return {words, exponent};
}

// Normalises, so that the highest bit is set.
Real normalised(Guarded size, std::int64_t exponent) {
  std::size_t top = size.size();
  while (top > 0 && size[top - 1] == 0) --top;
  if (top == 0) return {};
  const std::size_t words = size.size() - top;
  const int bits = std::countl_zero(size[top - 1]);
  for (std::size_t i = size.size(); i-- > 0;) {
    const std::uint64_t here = i >= words ? size[i - words] : 0, below = i >= words + 1 ? size[i - words - 1] : 0;
    size[i] = bits == 0 ? here : here << bits | below >> (64 - bits);
  }
  return rounded_size(size, exponent - static_cast<std::int64_t>(64 * words) - bits);
}

// The words of x shifted down by `bits`, with an extra word below them.
Guarded moved_down(const Real& x, std::int64_t bits) {
  Guarded size{};
  if (bits >= 64 * static_cast<std::int64_t>(size.size())) return size;
  const std::size_t words = bits / 64;
  const int rest = static_cast<int>(bits % 64);
  const auto word = [&](std::size_t i) { return i >= 1 && i <= kRealWords ? Access::words(x)[i - 1] : 0; };
  for (std::size_t i = 0; i + words < size.size(); ++i) {
    const std::uint64_t here = word(i + words), above = word(i + words + 1);
    size[i] = rest == 0 ? here : here >> rest | above << (64 - rest);
  }
  return size;
}

std::strong_ordering compare_sizes(const Real& a, const Real& b) {
  if (const auto order = Access::exponent(a) <=> Access::exponent(b); order != 0) return order;
  for (std::size_t i = kRealWords; i-- > 0;) {
    if (const auto order = Access::words(a)[i] <=> Access::words(b)[i]; order != 0) return order;
  }
  return std::strong_ordering::equal;
}

// |a| + |b|; |a| is not smaller.
Real sum_of_sizes(const Real& a, const Real& b) {
  Guarded sum = moved_down(a, 0);
  const Guarded other = moved_down(b, Access::exponent(a) - Access::exponent(b));
  uint128 carry = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    carry += static_cast<uint128>(sum[i]) + other[i];
    sum[i] = static_cast<std::uint64_t>(carry);
    carry >>= 64;
  }
  if (carry == 0) return rounded_size(sum, Access::exponent(a));
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = sum[i] >> 1 | (i + 1 < sum.size() ? sum[i + 1] : 1) << 63;
  return rounded_size(sum, Access::exponent(a) + 1);
}

// |a| − |b|; |a| is not smaller.
Real difference_of_sizes(const Real& a, const Real& b) {
  Guarded difference = moved_down(a, 0);
  const Guarded other = moved_down(b, Access::exponent(a) - Access::exponent(b));
  std::uint64_t borrow = 0;
  for (std::size_t i = 0; i < difference.size(); ++i) {
    const uint128 left = difference[i], right = static_cast<uint128>(other[i]) + borrow;
    borrow = left < right ? 1 : 0;
    difference[i] = static_cast<std::uint64_t>(left - right);
  }
  return normalised(difference, Access::exponent(a));
}

Real signed_sum(const Real& a, const Real& b, bool b_negative) {
  const bool a_negative = Access::negative(a);
  if (!Access::is_finite(a) || !Access::is_finite(b)) {
    if (Access::kind(a) == RealKind::kNan || Access::kind(b) == RealKind::kNan) return not_a_number();
    if (Access::is_finite(a)) return Access::special(RealKind::kInfinite, b_negative);
    return Access::is_finite(b) || a_negative == b_negative ? a : not_a_number();
  }
  if (Access::kind(b) == RealKind::kZero) return a;
  if (Access::kind(a) == RealKind::kZero) return Access::with_sign(b, b_negative);
  const bool a_is_larger = compare_sizes(a, b) >= 0;
  const Real &large = a_is_larger ? a : b, &small = a_is_larger ? b : a;
  if (a_negative == b_negative) return Access::with_sign(sum_of_sizes(large, small), a_negative);
  return Access::with_sign(difference_of_sizes(large, small), a_is_larger ? a_negative : b_negative);
}

// The quotient of two finite magnitudes: long division in words, Knuth's algorithm D. The divisor's highest bit is
// set, as the algorithm requires.
Real quotient_of_sizes(const Real& a, const Real& b) {
  constexpr std::size_t n = kRealWords, kQuotient = n + 2;
  const Access::Words& divisor = Access::words(b);
  std::array<std::uint64_t, n + kQuotient> left{};  // a · 2^(64 (n + 1)), and a word for the first digit
  for (std::size_t i = 0; i < n; ++i) left[i + kQuotient - 1] = Access::words(a)[i];
  std::array<std::uint64_t, kQuotient> digits{};
  const std::uint64_t first = divisor[n - 1], second = divisor[n - 2];
  for (std::size_t j = kQuotient; j-- > 0;) {
    const uint128 top = static_cast<uint128>(left[j + n]) << 64 | left[j + n - 1];
    uint128 digit = top / first, rest = top % first;
    while (digit >> 64 != 0 || digit * second > (rest << 64 | left[j + n - 2])) {
      --digit;
      rest += first;
      if (rest >> 64 != 0) break;
    }
    uint128 carry = 0;
    std::uint64_t borrow = 0;
    for (std::size_t i = 0; i <= n; ++i) {
      carry += i < n ? digit * divisor[i] : 0;
      const uint128 taken = static_cast<uint128>(static_cast<std::uint64_t>(carry)) + borrow;
      borrow = left[i + j] < taken ? 1 : 0;
      left[i + j] -= static_cast<std::uint64_t>(taken);
      carry >>= 64;
    }
    if (borrow != 0) {  // one too many
      --digit;
      carry = 0;
      for (std::size_t i = 0; i <= n; ++i) {
        carry += static_cast<uint128>(left[i + j]) + (i < n ? divisor[i] : 0);
        left[i + j] = static_cast<std::uint64_t>(carry);
        carry >>= 64;
      }
    }
    digits[j] = static_cast<std::uint64_t>(digit);
  }
  // digits = floor(a · 2^512 / b), of 512 or 513 bits
  Guarded size;
  std::copy_n(digits.begin(), size.size(), size.begin());
  const std::int64_t exponent = Access::exponent(a) - Access::exponent(b);
  if (digits.back() == 0) return rounded_size(size, exponent);
  for (std::size_t i = 0; i < size.size(); ++i)
    size[i] = size[i] >> 1 | (i + 1 < size.size() ? size[i + 1] : 1) << 63;
  return rounded_size(size, exponent + 1);
}

Real product_of_sizes(const Real& a, const Real& b) {
  constexpr std::size_t n = kRealWords;
  std::array<std::uint64_t, 2 * n> product{};
  for (std::size_t i = 0; i < n; ++i) {
    std::uint64_t carry = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const uint128 sum = static_cast<uint128>(Access::words(a)[i]) * Access::words(b)[j] + product[i + j] + carry;
      product[i + j] = static_cast<std::uint64_t>(sum);
      carry = static_cast<std::uint64_t>(sum >> 64);
    }
    product[i + n] = carry;
  }
  const bool is_short = product.back() >> 63 == 0;
  Guarded size;
  for (std::size_t i = 0; i < size.size(); ++i) {
    const std::uint64_t here = product[i + n - 1];
    size[i] = is_short ? here << 1 | product[i + n - 2] >> 63 : here;
  }
  return rounded_size(size, Access::exponent(a) + Access::exponent(b) - (is_short ? 1 : 0));
}

// The nearest T, ties to even, including gradual underflow.
template <class T> T nearest_of(const Real& x) {
  if (Access::kind(x) == RealKind::kNan) return std::numeric_limits<T>::quiet_NaN();
  const T sign = Access::negative(x) ? T{-1} : T{1};
  if (Access::kind(x) == RealKind::kInfinite) return sign * std::numeric_limits<T>::infinity();
  if (Access::kind(x) == RealKind::kZero) return T{0};
  constexpr int kDigits = std::numeric_limits<T>::digits, kLeast = std::numeric_limits<T>::min_exponent;
  const std::int64_t exponent = Access::exponent(x);
  if (exponent > std::numeric_limits<T>::max_exponent) return sign * std::numeric_limits<T>::infinity();
  const std::int64_t keep = exponent >= kLeast ? kDigits : kDigits - (kLeast - exponent);
  if (keep < 0) return sign * T{0};
  const std::uint64_t top = Access::words(x).back();
  const int cut = static_cast<int>(64 - keep);  // 11 to 64
  std::uint64_t kept = cut == 64 ? 0 : top >> cut;
  const std::uint64_t half = std::uint64_t{1} << (cut - 1), below = top & (half - 1);
  const bool has_more = below != 0 || std::any_of(Access::words(x).begin(), Access::words(x).end() - 1,
                                                  [](auto word) { return word != 0; });
  if ((top & half) != 0 && (has_more || kept % 2 == 1)) ++kept;
  return sign * std::ldexp(static_cast<T>(kept), static_cast<int>(exponent - keep));
}

// |x| without its fraction, as far as 64 bits allow.
std::uint64_t whole_size(const Real& x) {
  if (Access::kind(x) != RealKind::kFinite) return Access::kind(x) == RealKind::kInfinite ? ~std::uint64_t{0} : 0;
  if (Access::exponent(x) > 64) return ~std::uint64_t{0};
  return Access::exponent(x) <= 0 ? 0 : Access::words(x).back() >> (64 - Access::exponent(x));
}

// Without its fraction, towards zero.
Real cut_to_whole(const Real& x) {
  if (Access::kind(x) != RealKind::kFinite || Access::exponent(x) >= Real::kBits) return x;
  if (Access::exponent(x) <= 0) return {};
  Access::Words words = Access::words(x);
  std::int64_t fraction = Real::kBits - Access::exponent(x);
  for (std::uint64_t& word : words) {
    if (fraction <= 0) break;
    word = fraction >= 64 ? 0 : word >> fraction << fraction;
    fraction -= 64;
  }
  return Access::with_sign(Real(words, Access::exponent(x)), Access::negative(x));
}

}  // namespace

void Real::make(double value) {
  *this = {};
  if (std::isnan(value)) {
    kind_ = Kind::kNan;
  } else if (std::isinf(value)) {
    kind_ = Kind::kInfinite;
    negative_ = value < 0;
  } else if (value != 0) {
    int exponent = 0;
    const double fraction = std::frexp(std::fabs(value), &exponent);
    words_.back() = static_cast<std::uint64_t>(std::ldexp(fraction, 53)) << 11;
    exponent_ = exponent;
    negative_ = value < 0;
    kind_ = Kind::kFinite;
  }
}

void Real::make(std::uint64_t value) {
  *this = {};
  if (value == 0) return;
  const int zeros = std::countl_zero(value);
  words_.back() = value << zeros;
  exponent_ = 64 - zeros;
  kind_ = Kind::kFinite;
}

void Real::make(std::int64_t value) {
  make(value < 0 ? ~static_cast<std::uint64_t>(value) + 1 : static_cast<std::uint64_t>(value));
  negative_ = value < 0;
}

Real& Real::operator+=(const Real& other) { return *this = signed_sum(*this, other, other.negative_); }
Real& Real::operator-=(const Real& other) { return *this = signed_sum(*this, other, !other.negative_); }

Real& Real::operator*=(const Real& other) {
  const bool negative = negative_ != other.negative_;
  if (kind_ == Kind::kFinite && other.kind_ == Kind::kFinite) {
    *this = product_of_sizes(*this, other);
  } else if (kind_ == Kind::kNan || other.kind_ == Kind::kNan) {
    *this = not_a_number();
  } else if (kind_ == Kind::kZero || other.kind_ == Kind::kZero) {
    *this = kind_ == Kind::kInfinite || other.kind_ == Kind::kInfinite ? not_a_number() : Real();
  } else {
    *this = RealAccess::special(Kind::kInfinite);
  }
  negative_ = negative && kind_ != Kind::kZero;
  return *this;
}

Real& Real::operator/=(const Real& other) {
  const bool negative = negative_ != other.negative_;
  if (kind_ == Kind::kFinite && other.kind_ == Kind::kFinite) {
    *this = quotient_of_sizes(*this, other);
  } else if (kind_ == Kind::kNan || other.kind_ == Kind::kNan || (kind_ == other.kind_)) {
    *this = not_a_number();  // 0/0, ∞/∞
  } else if (kind_ == Kind::kZero || other.kind_ == Kind::kInfinite) {
    *this = Real();
  } else {
    *this = RealAccess::special(Kind::kInfinite);
  }
  negative_ = negative && kind_ != Kind::kZero;
  return *this;
}

Real Real::operator-() const { return RealAccess::with_sign(*this, !negative_); }

std::partial_ordering operator<=>(const Real& a, const Real& b) {
  if (a.kind_ == Real::Kind::kNan || b.kind_ == Real::Kind::kNan) return std::partial_ordering::unordered;
  const auto sign = [](const Real& x) { return x.kind_ == Real::Kind::kZero ? 0 : x.negative_ ? -1 : 1; };
  if (sign(a) != sign(b)) return sign(a) <=> sign(b);
  if (sign(a) == 0) return std::partial_ordering::equivalent;
  const auto sizes = a.kind_ != b.kind_                 ? a.kind_ <=> b.kind_  // infinity sorts after finite numbers
                     : a.kind_ == Real::Kind::kInfinite ? std::strong_ordering::equal
                                                        : compare_sizes(a, b);
  return a.negative_ ? 0 <=> sizes : sizes;
}

template <> float Real::convert_to() const { return nearest_of<float>(*this); }
template <> double Real::convert_to() const { return nearest_of<double>(*this); }
template <> std::uint64_t Real::convert_to() const { return negative_ ? 0 : whole_size(*this); }
template <> std::int64_t Real::convert_to() const {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const std::uint64_t size = whole_size(*this);
  if (negative_) return size > kMost ? std::numeric_limits<std::int64_t>::min() : -static_cast<std::int64_t>(size);
  return static_cast<std::int64_t>(std::min(size, kMost));
}

Real abs(const Real& x) { return RealAccess::with_sign(x, false); }

Real floor(const Real& x) {
  const Real whole = cut_to_whole(x);
  return whole > x ? whole - 1 : whole;
}

Real ceil(const Real& x) {
  const Real whole = cut_to_whole(x);
  return whole < x ? whole + 1 : whole;
}

Real ldexp(const Real& x, int exponent) {
  return RealAccess::kind(x) == RealKind::kFinite ? RealAccess::with_exponent(x, RealAccess::exponent(x) + exponent)
                                                  : x;
}

float nearest_float(const Real& value) { return value.convert_to<float>(); }

}  // namespace posenc::numerics
