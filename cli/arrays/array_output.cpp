#include "cli/arrays/array_output.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/system/failure.h"
#include "cli/system/streams.h"

namespace posenc::cli {

void refuse_terminal(std::string_view instead) {
  if (isatty(STDOUT_FILENO) != 1) return;
  refuse(fmt::format("standard output is a terminal; redirect it to a file or a pipe{}", instead));
}

ArrayFormat output_format(const std::string& path, ArrayFiles files) {
  if (path.ends_with(".npy")) return ArrayFormat::kNpy;
  const bool takes_both = files == ArrayFiles::kNpyOrSafetensors;
  if (takes_both && path.ends_with(".safetensors")) return ArrayFormat::kSafetensors;
  refuse(fmt::format("{}: the output must be a .npy {}file", path, takes_both ? "or .safetensors " : ""));
}

void refuse_same_file(const InputArray& input, const std::string& output, bool force) {
  if (!force && input.is_same_file(output)) {
    refuse(fmt::format("{} is also the input (use --force to overwrite it)", output));
  }
}

ArrayOutput::ArrayOutput(const std::string& path, bool force, ArrayFiles files) : path_(path) {
  if (path == "-") {
    refuse_terminal();
    return;
  }
  format_ = output_format(path, files);
  file_.emplace(output_target(path, force));
}

void ArrayOutput::begin(std::string_view name, DataType type, const Extents& shape) {
  const std::string head = array_head(format_, name, type, shape);
  if (file_) file_->reserve(static_cast<std::int64_t>(head.size()) + count_of(shape) * size_of(type));
  written_ = fmt::format("{} {}", to_string(shape), name_of(type));
  write(head);
}

void ArrayOutput::write(std::string_view bytes) { file_ ? file_->write(bytes) : print(bytes); }

void ArrayOutput::publish(bool is_quiet, std::string_view remark) {
  if (!file_) return;
  file_->publish();
  if (!is_quiet) tell(fmt::format("wrote {}: {}{}", path_, written_, remark));
}

}  // namespace posenc::cli
