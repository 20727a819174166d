#include "cli/pages/html.h"

namespace posenc::cli {

std::string escaped_html(std::string_view text) {
  constexpr std::string_view kSpecial = "<>&\"'";
  constexpr std::string_view kEntities[] = {"&lt;", "&gt;", "&amp;", "&quot;", "&#39;"};
  std::string result;
  for (const char c : text) {
    const std::size_t at = kSpecial.find(c);
    result += at == std::string_view::npos ? std::string_view(&c, 1) : kEntities[at];
  }
  return result;
}

}  // namespace posenc::cli
