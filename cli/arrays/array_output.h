#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/arrays/array_name.h"
#include "cli/arrays/input_array.h"
#include "cli/system/output_file.h"
#include "posenc/tensor.h"

namespace posenc::cli {

/// Throws: Failure if standard output is a terminal, to which no binary format should go. `instead` is further advice.
void refuse_terminal(std::string_view instead = "");

/// The files that a verb writes.
enum class ArrayFiles { kNpy, kNpyOrSafetensors };

/// Throws: Failure if the name of the file has another ending.
ArrayFormat output_format(const std::string& path, ArrayFiles files);

/// Throws: Failure if the output would replace the input, unless it is forced to.
void refuse_same_file(const InputArray& input, const std::string& output, bool force);

/// A dense array on its way to a file, which then appears complete or not at all, or to standard output for "-".
class ArrayOutput {
 public:
  /// Throws: Failure if it is a terminal, has another ending, or nothing can be written there.
  ArrayOutput(const std::string& path, bool force, ArrayFiles files);

  /// Comes first. `name` is the array's name in .safetensors. Reserves the disk space of the whole.
  void begin(std::string_view name, DataType type, const Extents& shape);
  void write(std::string_view bytes);
  /// Moves a file into place and, unless `is_quiet`, says what was written, followed by `remark`.
  void publish(bool is_quiet, std::string_view remark = "");

 private:
  std::string path_, written_ = {};
  ArrayFormat format_ = ArrayFormat::kNpy;
  std::optional<OutputFile> file_ = {};  // none: standard output
};

}  // namespace posenc::cli
