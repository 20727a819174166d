#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::cli {

enum class ArrayFormat { kNpy, kNpz, kSafetensors };

/// An array of a command line: x.npy, x.npz:name, x.safetensors:name.
struct ArrayName {
  std::string path;
  ArrayFormat format = ArrayFormat::kNpy;
  std::optional<std::string> name;  // empty where the file alone was given
};

/// The first .npz: or .safetensors: ends the path. What is neither is .npy, whatever it is called.
ArrayName array_name_from(const std::string& text);

/// Which of the names in a file is meant; where none was given, there must be one alone.
/// Throws: Failure that lists what there is, or says which name is near.
std::size_t choose_array(const ArrayName& wanted, const std::vector<std::string_view>& names);

/// A name from a file, as much of it as a message can bear.
std::string_view shortened(std::string_view name);

/// The bytes that go before an array in a file of its own. `name` is what .safetensors calls it; .npy has no names,
/// and .npz is not written.
std::string array_head(ArrayFormat format, std::string_view name, DataType type, const Extents& shape);

}  // namespace posenc::cli
