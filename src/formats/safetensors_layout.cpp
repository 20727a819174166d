#include <fmt/format.h>

#include <algorithm>

#include "formats/excerpt.h"
#include "formats/safetensors_dtype.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/safetensors.h"

namespace posenc {
namespace {

constexpr std::size_t kAlignment = 8;

[[noreturn]] void fail(const SafetensorsTensor& tensor, std::string_view what) {
  raise(fmt::format("safetensors: tensor {}: {}", quoted(tensor.name), what));
}

const SafetensorsDtype& dtype_of(const SafetensorsTensor& tensor) {
  if (tensor.type) return safetensors_dtype_of(*tensor.type);
  const SafetensorsDtype* const dtype = find_safetensors_dtype(tensor.dtype);
  if (dtype == nullptr) fail(tensor, fmt::format("dtype '{}' is unknown", excerpt(tensor.dtype)));
  return *dtype;
}

/// Fills in dtype and bytes.
void complete(SafetensorsTensor& tensor) {
  if (tensor.name.empty()) fail(tensor, "the name is empty");
  if (tensor.name == "__metadata__") fail(tensor, "the name is taken by the metadata");
  if (tensor.name.size() > kLongestSafetensorsName)
    fail(tensor, fmt::format("the name is longer than {} bytes", kLongestSafetensorsName));
  const SafetensorsDtype& dtype = dtype_of(tensor);
  if (tensor.shape.rank > Extents::kMax || count_of(tensor.shape) < 0) {
    fail(tensor, fmt::format("shape {} cannot be", to_string(tensor.shape)));
  }
  tensor.bytes = safetensors_bytes(dtype, tensor.shape);
  if (tensor.bytes < 0) fail(tensor, fmt::format("shape {} cannot be with {}", to_string(tensor.shape), dtype.name));
  tensor.dtype = dtype.name;
}

void refuse_repeated_names(const std::vector<SafetensorsTensor>& tensors) {
  std::vector<std::string_view> names;
  for (const SafetensorsTensor& tensor : tensors) names.push_back(tensor.name);
  std::sort(names.begin(), names.end());
  const auto repeated = std::adjacent_find(names.begin(), names.end());
  if (repeated == names.end()) return;
  raise(fmt::format("safetensors: two tensors are named {}", quoted(*repeated)));
}

Json::Array list_of(const Extents& shape) {
  Json::Array list;
  for (int axis = 0; axis < shape.rank; ++axis) list.emplace_back(shape[axis]);
  return list;
}

}  // namespace

std::string lay_out_safetensors(SafetensorsHead& head) {
  for (SafetensorsTensor& tensor : head.tensors) complete(tensor);
  refuse_repeated_names(head.tensors);
  std::sort(head.tensors.begin(), head.tensors.end(), [](const auto& a, const auto& b) {
    const std::int64_t width_a = dtype_of(a).bits;
    const std::int64_t width_b = dtype_of(b).bits;
    return width_a != width_b ? width_a > width_b : a.name < b.name;
  });

  Json::Object header;
  if (!head.metadata.empty()) {
    Json::Object metadata;
    for (const auto& [key, text] : head.metadata) metadata.emplace_back(key, text);
    header.emplace_back("__metadata__", std::move(metadata));
  }
  std::int64_t end = 0;
  for (SafetensorsTensor& tensor : head.tensors) {
    tensor.offset = end;
    if (__builtin_add_overflow(end, tensor.bytes, &end)) fail(tensor, "the data ends past 2^63");
    header.emplace_back(tensor.name, Json::Object{{"dtype", tensor.dtype},
                                                  {"shape", list_of(tensor.shape)},
                                                  {"data_offsets", Json::Array{tensor.offset, end}}});
  }
  std::string text = dump_json(header);
  // invalid UTF-8 was replaced in the output, and repeated metadata keys are rejected
  if (parse_json(text) != Json(header)) raise("safetensors: a name or a text of the metadata is not UTF-8");

  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  std::string bytes;
  for (std::size_t i = 0; i < 8; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xFF);
  bytes += text;
  head.data_offset = static_cast<std::int64_t>(bytes.size());
  for (SafetensorsTensor& tensor : head.tensors) tensor.offset += head.data_offset;
  return bytes;
}

}  // namespace posenc
