#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::lessons {

// Reads parts of a file in content/. `where` names the file and the entry in error messages.

[[noreturn]] void complain(std::string_view where, std::string_view what);
/// Throws: Error unless the field is text, or it is missing and not required.
std::string text_of(const Json& json, std::string_view name, std::string_view where, bool required = true);
/// Throws: Error unless the field is a list.
const Json::Array& list_of(const Json& json, std::string_view name, std::string_view where);

/// The topics in content/topics.json, in the order in which they are taught.
std::vector<std::string> topics();

/// The stories of all topics, in the same order.
std::vector<std::string> story_names();

}  // namespace posenc::lessons
