#include "cli/flags/length_flag.h"

#include <fmt/format.h>

#include <variant>

#include "cli/arrays/numbers.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

void refuse_without_length(const Scheme& scheme) {
  const auto* const rope = std::get_if<Rope>(&scheme);
  if (rope == nullptr) return;
  const auto ask = []<class S>(const S&) {
    if constexpr (requires { S::needs_length; }) {
      refuse(fmt::format("rope: scaling {} depends on the length of the sequence (--length N)", S::name));
    }
  };
  std::visit(ask, rope->scaling);
}

}  // namespace

void add_length_flag(Command verb, std::string& length) {
  verb.add_option("--length", length, "tokens in the whole sequence, for scalings of rope that depend on it")
      .type_name("N");
}

std::int64_t length_from(const std::string& text, const Scheme& scheme) {
  if (text.empty()) {
    refuse_without_length(scheme);
    return 0;
  }
  const std::int64_t length = integer_from(text, "--length");
  if (length < 1) refuse(fmt::format("--length: {} must be at least 1", length));
  return length;
}

}  // namespace posenc::cli
