#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace posenc::cli {

/// SHA-1, for what Anki computes with it: checksums of fields. It protects nothing.
std::array<std::uint8_t, 20> sha1(std::string_view bytes);

}  // namespace posenc::cli
