#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::cli {

enum class ArrayFormat { kNpy, kNpz, kSafetensors };

/// An array named on the command line: x.npy, x.npz:name, x.safetensors:name.
struct ArrayName {
  std::string path;
  ArrayFormat format = ArrayFormat::kNpy;
  std::optional<std::string> name;  // unset if only the file was given
};

/// The first .npz: or .safetensors: ends the path. Anything else is treated as .npy, whatever its name.
ArrayName array_name_from(const std::string& text);

/// Which of the names in a file is meant; if none was given, the file must have exactly one.
/// Throws: Failure that lists the names, or suggests a similar one.
std::size_t choose_array(const ArrayName& wanted, const std::vector<std::string_view>& names);

/// A name from a file, shortened for a message.
std::string_view shortened(std::string_view name);

/// The bytes that precede an array in a file of its own. `name` is its name in .safetensors; .npy has no names, and
/// .npz is not written.
std::string array_head(ArrayFormat format, std::string_view name, DataType type, const Extents& shape);

}  // namespace posenc::cli
