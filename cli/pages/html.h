#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// Text as the content of an element, or between the quotes of an attribute.
std::string escaped_html(std::string_view text);

}  // namespace posenc::cli
