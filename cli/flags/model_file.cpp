#include "cli/flags/model_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <span>
#include <string_view>
#include <system_error>
#include <vector>

#include "cli/system/failure.h"
#include "cli/system/input_file.h"
#include "cli/system/streams.h"
#include "posenc/byte_source.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/safetensors.h"

namespace posenc::cli {
namespace {

// The file in a folder that could be meant if there is no config.json; "" for none.
std::string gguf_in(const std::string& folder) {
  std::string found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".gguf") && (found.empty() || name < found)) found = name;
  }
  return found;
}

// What to give instead of a path that does not exist: often it is the name of a model or of a family.
std::string advice_for_missing(const std::string& path) {
  const std::vector<ModelType> types = model_types();
  if (std::any_of(types.begin(), types.end(), [&](const ModelType& type) { return type.name == path; })) {
    return fmt::format(
        "{0} is a model_type; to see its defaults: echo '{{\"model_type\":\"{0}\"}}' | posenc inspect -", path);
  }
  const std::size_t slash = path.rfind('/');
  if (slash != std::string::npos && path.substr(slash) == "/config.json") {
    const std::string gguf = gguf_in(path.substr(0, slash));
    if (!gguf.empty()) return fmt::format("the folder has {}: give that file", gguf);
  }
  const bool is_file = path.ends_with(".json") || path.ends_with(".gguf");
  // meta-llama/Llama-3.1-8B
  const bool is_name = !is_file && std::count(path.begin(), path.end(), '/') == 1 && !path.starts_with('/') &&
                       !path.starts_with('.') && !path.ends_with('/');
  return is_name ? "models are not downloaded; save the model's config.json and give its path"
                 : "give a config.json, a folder that contains one, or a .gguf file";
}

// A file as memory, read only as far as needed: a .gguf has its metadata at the start and gigabytes after it.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    if (path != "-" && !is_there(path) && errno == ENOENT) {
      throw Failure{kFilesFailed, fmt::format("{}: No such file or directory; {}", path, advice_for_missing(path))};
    }
    std::int64_t size = 0;
    const Descriptor file = open_regular(path, size);
    size_ = size;
    if (size_ == 0) return;
    data_ = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
    if (data_ == MAP_FAILED) fail_with_errno(path, errno);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (data_ != nullptr) munmap(data_, size_);
  }
  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(data_), size_}; }
  std::string_view text() const { return {static_cast<const char*>(data_), size_}; }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

// Whether `text` is the number of a layer in this group.
bool has_layer(const LayerGroup& group, const std::string& text) {
  return std::any_of(group.layers.begin(), group.layers.end(),
                     [&](std::int64_t layer) { return std::to_string(layer) == text; });
}

// The config that `posenc lab` stores in its checkpoints; other programs write it to a separate file.
const std::string& config_in(const SafetensorsHead& head) {
  for (const auto& [key, value] : head.metadata) {
    if (key == "config") return value;
  }
  raise("has weights alone; give the config.json next to it, or its folder");
}

// The layers of the chosen part.
const std::vector<LayerGroup>& groups_of(const Model& model, const ModelFlags& flags) {
  if (flags.part.empty()) return model.groups;
  std::vector<std::string> names;
  for (const ModelPart& part : model.parts) {
    if (part.name == flags.part) return part.groups;
    names.push_back(one_line(part.name));
  }
  refuse(names.empty()
             ? fmt::format("--part: {} has no parts", flags.path)
             : fmt::format("--part: '{}' is not one of {} in {}", flags.part, fmt::join(names, ", "), flags.path));
}

}  // namespace

bool is_directory(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

std::vector<PositionTable> tables_from(const std::string& folder) {
  const std::string front = folder + (folder.ends_with('/') ? "" : "/");
  const std::string index = front + "model.safetensors.index.json", single = "model.safetensors";
  std::vector<PositionTable> tables;
  try {
    if (is_there(index)) {
      tables = position_tables(MappedFile(index).text());
    } else if (is_there(front + single)) {
      const MappedFile file(front + single);
      const SafetensorsHead head = read_safetensors_head(ByteSource(file.bytes()));
      for (const SafetensorsTensor& one : head.tensors) {
        if (is_position_table(one.name)) tables.push_back({one.name, single});
      }
    }
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", is_there(index) ? index : front + single, error.what()));
  }
  for (PositionTable& table : tables) {
    // an index may name a shard that was not downloaded, and must not name one outside the folder
    if (table.file.find('/') != std::string::npos || !is_there(front + table.file)) continue;
    const MappedFile file(front + table.file);
    try {
      const SafetensorsHead head = read_safetensors_head(ByteSource(file.bytes()));
      if (const SafetensorsTensor* const one = head.find(table.name)) {
        for (int axis = 0; axis < one->shape.rank; ++axis) table.shape.push_back(one->shape[axis]);
      }
    } catch (const Error& error) {
      refuse(fmt::format("{}: {}", front + table.file, error.what()));
    }
  }
  return tables;
}

Model model_from(const std::string& path) {
  std::string name = path;
  if (is_directory(path)) {
    const std::string front = path + (path.ends_with('/') ? "" : "/");
    // Meta and Mistral publish params.json alone
    const bool has_params = !is_there(front + "config.json") && is_there(front + "params.json");
    name = front + (has_params ? "params.json" : "config.json");
  }
  const MappedFile file(name);
  try {
    if (file.text().starts_with("GGUF") || name.ends_with(".gguf")) {
      return read_model(read_gguf_head(file.bytes()), file.bytes());
    }
    if (name.ends_with(".safetensors")) return read_model(config_in(read_safetensors_head(ByteSource(file.bytes()))));
    return read_model(file.text());
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", name, error.what()));
  }
}

void add_model_flags(Command verb, ModelFlags& flags) {
  verb.add_option("--model", flags.path,
                  "use the scheme of a model: a config.json, a folder with one, or a .gguf file")
      .type_name("PATH");
  verb.add_option("--layer-type", flags.layer_type,
                  "layers to use, if a model's layers differ: a layer type or number")
      .type_name("NAME");
}

LayerGroup take_model(const ModelFlags& flags, SchemeRequest& request, std::string_view verb, bool is_quiet) {
  if (request.is_chosen) refuse(fmt::format("{}: a scheme and --model cannot be combined", verb));
  const Model model = model_from(flags.path);
  const std::vector<LayerGroup>& groups = groups_of(model, flags);
  std::vector<std::string> choices;
  for (const LayerGroup& group : groups) {
    // layers of several types that do the same have no type; the scheme's name then distinguishes them
    const std::string& name = group.layer_type.empty() ? group.scheme_name : group.layer_type;
    choices.push_back(group.layers.empty()
                          ? one_line(name)
                          : fmt::format("{} (layers {})", one_line(name), layer_ranges(group.layers)));
    // vectors are encoded alike if only scales, windows and masks differ
    const bool is_alike = verb == "apply" && std::all_of(groups.begin(), groups.end(), [&](const LayerGroup& other) {
                            return other.scheme == group.scheme && other.scheme_name == group.scheme_name &&
                                   other.first_position == group.first_position;
                          });
    const bool is_only = flags.layer_type.empty() && (groups.size() == 1 || is_alike);
    if (!is_only && name != flags.layer_type && !has_layer(group, flags.layer_type)) continue;
    if (!group.scheme) {
      refuse(fmt::format("{}: uses {}, which posenc cannot compute", flags.path, group.scheme_name));
    }
    request.scheme = *group.scheme;
    request.is_chosen = true;
    request.model = flags.path;
    request.given = field_names(*group.scheme);
    if (!is_quiet) {
      for (const auto* const list : {&model.warnings, &model.notes}) {
        for (const std::string& text : *list) tell(fmt::format("note: {}: {}", flags.path, one_line(text)));
      }
      if (group.temperature && verb != "attend") {
        tell(fmt::format("note: {}: queries of these layers are multiplied by {} as well", flags.path,
                         to_string(*group.temperature)));
      }
    }
    return group;
  }
  refuse(flags.layer_type.empty() ? fmt::format("{}: its layers differ; choose with --layer-type: {}", flags.path,
                                                fmt::join(choices, ", "))
                                  : fmt::format("--layer-type: '{}' is not one of {} in {}", flags.layer_type,
                                                fmt::join(choices, ", "), flags.path));
}

}  // namespace posenc::cli
