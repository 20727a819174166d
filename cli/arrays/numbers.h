#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace posenc::cli {

/// An integer and nothing else: no 1.5, 0x10, 1e3 or spaces.
/// Throws: Failure "WHAT: …" that says what is wrong with the text.
std::int64_t integer_from(std::string_view text, std::string_view what);

/// As above, for a decimal number.
double number_from(std::string_view text, std::string_view what);

/// Bytes: 1048576, 512KiB, 64GiB, 2TiB.
std::int64_t bytes_from(std::string_view text, std::string_view what);

/// "512 TiB", "1.5 GiB", "96 bytes".
std::string in_bytes(double count);

}  // namespace posenc::cli
