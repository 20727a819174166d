#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "posenc/attention.h"
#include "posenc/error.h"

namespace posenc {

/// Whether an option differs from its default.
inline bool is_given(bool flag) { return flag; }
inline bool is_given(std::int64_t number) { return number != 0; }
inline bool is_given(double number) { return number != 0; }  // NaN too
inline bool is_given(const Form& form) {
  const auto* const nothing = std::get_if<Nothing>(&form);
  return nothing == nullptr || nothing->temperature.has_value();
}
template <class T> bool is_given(const std::optional<T>& value) { return value.has_value(); }
template <class T> bool is_given(std::span<T> numbers) { return !numbers.empty(); }
template <class Void> bool is_given(const BasicTensorView<Void>& tensor) { return tensor.data != nullptr; }

/// A set of attention's options. Each engine states the set that it takes, and rejects every other option that is given:
/// it need not know which others there are.
class OptionSet {
 public:
  constexpr OptionSet() = default;
  template <class... T> constexpr explicit OptionSet(T AttentionOptions::*... members) { (add(members), ...); }
  /// Those that differ from their default.
  explicit OptionSet(const AttentionOptions& options) {
    std::uint64_t bit = 1;
    AttentionOptions::fields([&](std::string_view, auto member, std::string_view) {
      if (is_given(options.*member)) bits_ |= bit;
      bit <<= 1;
    });
  }

  template <class T> constexpr bool has(T AttentionOptions::*member) const {
    return (bits_ & OptionSet(member).bits_) != 0;
  }
  constexpr OptionSet without(OptionSet others) const { return OptionSet(bits_ & ~others.bits_); }
  constexpr bool is_empty() const { return bits_ == 0; }
  /// The name of the first; "" if there is none.
  constexpr std::string_view first_name() const {
    std::string_view found;
    std::uint64_t bit = 1;
    AttentionOptions::fields([&](std::string_view name, auto, std::string_view) {
      if (found.empty() && (bits_ & bit) != 0) found = name;
      bit <<= 1;
    });
    return found;
  }

 private:
  constexpr explicit OptionSet(std::uint64_t bits) : bits_(bits) {}
  template <class T> constexpr void add(T AttentionOptions::*wanted) {
    std::uint64_t bit = 1;
    AttentionOptions::fields([&]<class Other>(std::string_view, Other AttentionOptions::*member, std::string_view) {
      if constexpr (std::is_same_v<T, Other>) bits_ |= member == wanted ? bit : 0;
      bit <<= 1;
    });
  }
  std::uint64_t bits_ = 0;  // in the order of fields
};

/// Throws: Error that begins with the verb and names the first option that is given but not taken.
inline void refuse_others(std::string_view verb, OptionSet given, OptionSet taken, std::string_view where) {
  const std::string_view other = given.without(taken).first_name();
  if (other.empty()) return;
  raise(std::string(verb) + ": " + std::string(where) + " does not support the option " + std::string(other));
}

}  // namespace posenc
