#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"
#include "posenc/scheme.h"

namespace posenc::page {

/// A question of the page: fields, and the bytes of files where it has some (one after another; `sizes` in the fields).
struct Question {
  Json fields;
  std::span<const std::byte> bytes;
};

/// What comes back: a JSON document, and numbers or bytes that it refers to.
struct Answer {
  Json json = {};
  std::vector<std::byte> bytes = {};
};

using Call = Answer (*)(const Question& question);
struct NamedCall {
  std::string_view name;
  Call call;
};

/// The one list of what this module can be asked. Each module (core, figures, stories, practice, models) has its own.
std::span<const NamedCall> calls();

// Fields with a default; of a wrong type: an Error that names the field.
double number(const Json& fields, std::string_view name, double otherwise);
std::int64_t integer(const Json& fields, std::string_view name, std::int64_t otherwise);
std::string text(const Json& fields, std::string_view name, std::string_view otherwise = "");
bool flag(const Json& fields, std::string_view name);
/// The field "scheme".
Scheme asked_scheme(const Json& fields);

// Calls of core and figures.
Answer figure(const Question& question);
Answer table(const Question& question);
Answer closest(const Question& question);
Answer sentence(const Question& question);
// Calls of figures alone.
Answer dots(const Question& question);
Answer frequencies(const Question& question);
Answer scores(const Question& question);
Answer list_schemes(const Question& question);
Answer prove_scheme(const Question& question);
Answer cost(const Question& question);

}  // namespace posenc::page
