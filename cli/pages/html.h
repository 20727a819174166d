#pragma once

#include <string>
#include <string_view>

namespace posenc::cli {

/// Escapes text for the content of an element, or for a quoted attribute.
std::string escaped_html(std::string_view text);

}  // namespace posenc::cli
