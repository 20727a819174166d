#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "posenc/json.h"

namespace posenc::lessons {

// Parts of a file of content/; `where` names file and entry in the message.

[[noreturn]] void complain(std::string_view where, std::string_view what);
/// Throws: Error unless it is text, or missing and not required.
std::string text_of(const Json& json, std::string_view name, std::string_view where, bool required = true);
/// Throws: Error unless it is a list.
const Json::Array& list_of(const Json& json, std::string_view name, std::string_view where);

/// The names of content/topics.json, in the order of learning.
std::vector<std::string> topics();

}  // namespace posenc::lessons
