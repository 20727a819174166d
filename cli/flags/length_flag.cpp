#include "cli/flags/length_flag.h"

#include <fmt/format.h>

#include <variant>

#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

// What the length decides: "rope", or the choice within it that does, "rope: scaling dynamic".
std::string whose_length(const Scheme& scheme) {
  std::string text(name_of(scheme));
  const auto look_at_field = [&](std::string_view name, const auto& value) {
    const auto look = [&]<class S>(const S&) {
      if constexpr (requires { S::needs_length; }) text += fmt::format(": {} {}", name, S::name);
    };
    if constexpr (requires { std::visit(look, value); }) std::visit(look, value);
  };
  std::visit(
      [&]<class S>(const S& one) {
        S::fields([&](std::string_view name, auto member, std::string_view) { look_at_field(name, one.*member); });
      },
      scheme);
  return text;
}

}  // namespace

void add_length_flag(Command verb, std::string& length) {
  verb.add_option("--length", length, "tokens in the whole sequence, for schemes and scalings that depend on it")
      .type_name("N");
}

std::int64_t length_from(const std::string& text, const Scheme& scheme) {
  if (text.empty()) {
    if (length_need_of(scheme) == LengthNeed::kSequence) {
      refuse(fmt::format("{} depends on the length of the sequence (--length N)", whose_length(scheme)));
    }
    return 0;
  }
  const std::int64_t length = integer_from(text, "--length");
  if (length < 1) refuse(fmt::format("--length: {} must be at least 1", length));
  return length;
}

}  // namespace posenc::cli
