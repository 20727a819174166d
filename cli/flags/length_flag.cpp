#include "cli/flags/length_flag.h"

#include <fmt/format.h>

#include <string>
#include <variant>

#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

// What depends on the length: "rope", or the choice within it, "rope: scaling dynamic".
std::string whose_length(const Scheme& scheme) {
  std::string text(name_of(scheme));
  const auto look_at_field = [&](std::string_view name, const auto& value) {
    const auto look = [&]<class S>(const S&) {
      if constexpr (requires { S::needs_length; }) text += fmt::format(": {} {}", name, S::name);
    };
    if constexpr (requires { std::visit(look, *value); }) std::visit(look, *value);
  };
  std::visit(
      [&]<class S>(const S& one) {
        S::fields([&](std::string_view name, auto member, std::string_view) { look_at_field(name, one.*member); });
      },
      scheme);
  return text;
}

}  // namespace

void add_length_flag(Command verb, std::optional<std::int64_t>& length) {
  verb.add_integer("--length", length, {.least = 1},
                   "tokens in the whole sequence, for schemes and scalings that depend on the length");
}

std::int64_t length_for(const Scheme& scheme, std::optional<std::int64_t> length) {
  if (!length && length_need_of(scheme) == LengthNeed::kSequence) {
    refuse(fmt::format("{} depends on the length of the sequence (--length N)", whose_length(scheme)));
  }
  return length.value_or(0);
}

}  // namespace posenc::cli
