#include "cli/arrays/dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/arrays/input_array.h"
#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

struct TensorName {
  std::int64_t layer = 0;
  bool is_key = false, is_after = false;
};

// layers.N.q.before
std::optional<TensorName> tensor_name_from(std::string_view text) {
  constexpr std::string_view kFront = "layers.";
  if (!text.starts_with(kFront)) return std::nullopt;
  text.remove_prefix(kFront.size());
  TensorName name;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), name.layer);
  if (error != std::errc() || name.layer < 0) return std::nullopt;
  text.remove_prefix(end - text.data());
  for (const bool is_key : {false, true}) {
    for (const bool is_after : {false, true}) {
      if (text != fmt::format(".{}.{}", is_key ? "k" : "q", is_after ? "after" : "before")) continue;
      name.is_key = is_key;
      name.is_after = is_after;
      return name;
    }
  }
  return std::nullopt;
}

class Finder {
 public:
  // An array of this name, and how it is named on the command line.
  void take(std::string_view name, std::string array) {
    if (name == "positions") return place(found_.positions, std::move(array));
    const std::optional<TensorName> tensor = tensor_name_from(name);
    if (!tensor) return found_.unread.push_back(std::move(array));
    DumpedTensor& one = tensors_[{tensor->layer, tensor->is_key}];
    one.layer = tensor->layer;
    one.is_key = tensor->is_key;
    place(tensor->is_after ? one.after : one.before, std::move(array));
  }

  void take_safetensors(const std::string& path) {
    for (const std::string& name : safetensors_names(path)) take(name, fmt::format("{}:{}", path, name));
  }

  Dump finish(const std::string& path) {
    if (tensors_.empty()) {
      refuse(
          fmt::format("{} contains no layers.N.q.before, layers.N.q.after, layers.N.k.before or layers.N.k.after, as "
                      ".npy files or as tensors of .safetensors files",
                      path));
    }
    for (auto& [key, one] : tensors_) {
      if (one.before.empty() || one.after.empty()) {
        refuse(fmt::format("{}: layers.{}.{}.{} is missing", path, one.layer, one.is_key ? "k" : "q",
                           one.before.empty() ? "before" : "after"));
      }
      found_.tensors.push_back(std::move(one));
    }
    return std::move(found_);
  }

 private:
  static void place(std::string& where, std::string array) {
    if (!where.empty()) refuse(fmt::format("{} is there twice; the other is {}", array, where));
    where = std::move(array);
  }

  std::map<std::pair<std::int64_t, bool>, DumpedTensor> tensors_;
  Dump found_;
};

}  // namespace

Dump find_dump(const std::string& path) {
  Finder finder;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) {
    if (!path.ends_with(".safetensors")) refuse(fmt::format("{} is neither a folder nor a .safetensors file", path));
    finder.take_safetensors(path);
    return finder.finish(path);
  }
  std::vector<std::string> files;
  for (std::filesystem::directory_iterator at(path, error), end; !error && at != end; at.increment(error)) {
    files.push_back(at->path().string());
  }
  if (error) refuse(fmt::format("{}: {}", path, error.message()));
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (file.ends_with(".npy")) finder.take(std::filesystem::path(file).stem().string(), file);
    if (file.ends_with(".safetensors")) finder.take_safetensors(file);
  }
  return finder.finish(path);
}

}  // namespace posenc::cli
