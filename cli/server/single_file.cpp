// The site as one file: everything that the page would fetch is embedded as base64, because a page opened from disk
// may not fetch.

#include <algorithm>

#include "cli/server/site.h"

namespace posenc::cli {
namespace {

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += k <= count ? kDigits[group >> (18 - 6 * k) & 63U] : '=';
    }
  }
  return text;
}

}  // namespace

std::string single_file() {
  std::string page;
  std::string_view rest = single_page();
  for (const SiteFile& file : site_files()) {
    const std::string mark = "@" + std::string(file.path.substr(1)) + "@";
    const std::size_t at = rest.find(mark);
    if (at == std::string_view::npos) continue;
    page += rest.substr(0, at);
    page += base64(file.bytes);
    rest.remove_prefix(at + mark.size());
  }
  page += rest;
  return page;
}

}  // namespace posenc::cli
