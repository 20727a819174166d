#include "lessons/named_schemes.h"

#include <fmt/format.h>

#include "posenc/content.h"
#include "posenc/error.h"
#include "posenc/json.h"

namespace posenc::lessons {

NamedScheme named_scheme(std::string_view name) {
  static const Json all = parse_json(content("schemes.json"));
  const Json* entry = all.find(name);
  const Json* scheme = entry == nullptr ? nullptr : entry->find("scheme");
  if (scheme == nullptr) raise(fmt::format("formula: content/schemes.json has no scheme '{}'", name));
  NamedScheme result{scheme_from_json(dump_json(*scheme)), 0};
  if (const Json* length = entry->find("length"); length != nullptr) {
    const auto* tokens = length->as<std::int64_t>();
    if (tokens == nullptr) raise(fmt::format("formula: the length of scheme '{}' must be whole", name));
    result.length = *tokens;
  }
  return result;
}

}  // namespace posenc::lessons
