#pragma once

#include <string>
#include <string_view>

#include "posenc/json.h"

namespace posenc {

/// At most 40 bytes of a text for a message, cut between UTF-8 characters.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t kMost = 40;
  if (text.size() <= kMost) return std::string(text);
  std::size_t end = kMost;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return std::string(text.substr(0, end)) + "...";
}

/// A name from a file for a message: in double quotes, on one line, shortened.
inline std::string quoted(std::string_view name) { return dump_json(excerpt(name)); }

}  // namespace posenc
