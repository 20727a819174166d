#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace posenc::cli {

/// SHA-1, for the checksums of fields that Anki computes with it. Not used for security.
std::array<std::uint8_t, 20> sha1(std::string_view bytes);

}  // namespace posenc::cli
