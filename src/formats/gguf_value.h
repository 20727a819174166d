#pragma once

#include "formats/byte_reader.h"
#include "posenc/gguf.h"

namespace posenc {

/// Longer texts are not metadata.
inline constexpr std::uint64_t kLongestGgufText = 16 << 20;

/// A text preceded by its length; `what` names it in messages.
/// Throws: Error "byte OFFSET: WHAT" if it is longer than `longest` or than what remains.
std::string_view take_gguf_text(ByteReader& reader, std::uint64_t longest, std::string_view what);

/// A type and its value. Throws: Error "byte OFFSET: WHAT" for an unknown type, an array of arrays, a bool that is
/// neither 0 nor 1, or a count that the file cannot contain.
GgufValue take_gguf_value(ByteReader& reader);

}  // namespace posenc
