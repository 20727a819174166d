#include "lab/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "posenc/error.h"
#include "posenc/safetensors.h"

namespace posenc::lab {
namespace {

constexpr std::string_view kPackedFormat = "posenc-lab-packed-1", kScales = ".scales";
constexpr float kLargest = 127;

bool is_matrix(const Slice& slice) { return slice.shape.rank == 2; }

struct Rows {
  std::vector<float> scales;
  std::string bytes;
};

Rows rounded(const float* values, std::int64_t rows, std::int64_t columns) {
  Rows packed;
  for (std::int64_t i = 0; i < rows; ++i, values += columns) {
    float largest = 0;
    for (std::int64_t j = 0; j < columns; ++j) largest = std::max(largest, std::fabs(values[j]));
    const float scale = largest / kLargest;
    packed.scales.push_back(scale);
    for (std::int64_t j = 0; j < columns; ++j) {
      const float whole = scale > 0 ? std::round(values[j] / scale) : 0;
      packed.bytes.push_back(static_cast<char>(static_cast<std::int8_t>(std::clamp(whole, -kLargest, kLargest))));
    }
  }
  return packed;
}

std::string bytes_of_floats(const float* values, std::int64_t count) {
  return std::string(reinterpret_cast<const char*>(values), count * sizeof(float));
}

// Bytes may be no UTF-8, which metadata must be: they are written as numbers.
Json json_of_alphabet(std::string_view alphabet) {
  Json::Array numbers;
  for (const char byte : alphabet) numbers.emplace_back(std::int64_t{static_cast<unsigned char>(byte)});
  return numbers;
}

const std::string& packed_metadata(const SafetensorsHead& head, std::string_view name) {
  for (const auto& [key, value] : head.metadata) {
    if (key == name) return value;
  }
  raise(fmt::format("lab: this is no packed model: its metadata has no \"{}\"", name));
}

std::string alphabet_from(const Json& json, const Shape& shape) {
  const auto* const numbers = json.as<Json::Array>();
  if (numbers == nullptr || std::ssize(*numbers) + 1 != shape.vocabulary) {
    raise(fmt::format("lab: the alphabet must be a list of {} bytes", shape.vocabulary - 1));
  }
  std::string alphabet;
  for (const Json& number : *numbers) {
    const auto* const byte = number.as<std::int64_t>();
    if (byte == nullptr || *byte < 0 || *byte > 255) raise("lab: the alphabet has something that is no byte");
    alphabet.push_back(static_cast<char>(*byte));
  }
  return alphabet;
}

const std::byte* data_of(std::span<const std::byte> file, const SafetensorsHead& head, const std::string& name,
                         std::string_view dtype, const Extents& shape) {
  const SafetensorsTensor* const tensor = head.find(name);
  if (tensor == nullptr) raise(fmt::format("lab: the packed model has no tensor '{}'", name));
  if (tensor->dtype != dtype || tensor->shape != shape) {
    raise(fmt::format("lab: '{}' in the packed model must be {} {} but is {} {}", name, dtype, to_string(shape),
                      tensor->dtype, to_string(tensor->shape)));
  }
  return file.data() + tensor->offset;
}

}  // namespace

std::string pack(const PackedModel& model) {
  SafetensorsHead head;
  std::map<std::string, std::string> data;
  const auto add = [&](const std::string& name, std::string_view dtype, const Extents& shape, std::string bytes) {
    SafetensorsTensor tensor;
    tensor.name = name;
    tensor.dtype = dtype;
    if (dtype == "F32") tensor.type = DataType::kF32;
    tensor.shape = shape;
    head.tensors.push_back(std::move(tensor));
    data[name] = std::move(bytes);
  };
  for (const Slice& slice : model.network.layout.slices) {
    const float* const values = model.network.parameters.data() + slice.offset;
    if (!is_matrix(slice)) {
      add(slice.name, "F32", slice.shape, bytes_of_floats(values, slice.count));
      continue;
    }
    Rows rows = rounded(values, slice.shape[0], slice.shape[1]);
    add(slice.name + std::string(kScales), "F32", {slice.shape[0]},
        bytes_of_floats(rows.scales.data(), slice.shape[0]));
    add(slice.name, "I8", slice.shape, std::move(rows.bytes));
  }
  head.metadata = {{"format", std::string(kPackedFormat)},
                   {"shape", dump_json(to_json(model.network.shape))},
                   {"alphabet", dump_json(json_of_alphabet(model.alphabet))},
                   {"text", model.text},
                   {"scores", dump_json(model.scores)}};
  std::string bytes = lay_out_safetensors(head);
  for (const SafetensorsTensor& tensor : head.tensors) bytes += data[tensor.name];
  return bytes;
}

PackedModel unpack(std::span<const std::byte> bytes) {
  const SafetensorsHead head = read_safetensors_head(ByteSource(bytes));
  if (const std::string& format = packed_metadata(head, "format"); format != kPackedFormat) {
    raise(fmt::format("lab: the model's format is '{}' but must be '{}'", format, kPackedFormat));
  }
  PackedModel model;
  Network<float>& network = model.network;
  network.shape = shape_from_json(parse_json(packed_metadata(head, "shape")));
  network.layout = layout_of(network.shape);
  model.alphabet = alphabet_from(parse_json(packed_metadata(head, "alphabet")), network.shape);
  model.text = packed_metadata(head, "text");
  model.scores = parse_json(packed_metadata(head, "scores"));
  // Before memory is taken for them: the file has every tensor that the shape asks for.
  for (const Slice& slice : network.layout.slices) {
    data_of(bytes, head, slice.name, is_matrix(slice) ? "I8" : "F32", slice.shape);
  }
  network.parameters.assign(network.layout.count, 0.0f);
  for (const Slice& slice : network.layout.slices) {
    float* to = network.parameters.data() + slice.offset;
    if (!is_matrix(slice)) {
      std::memcpy(to, data_of(bytes, head, slice.name, "F32", slice.shape), slice.count * sizeof(float));
      continue;
    }
    const std::byte* from = data_of(bytes, head, slice.name, "I8", slice.shape);
    const std::byte* scales = data_of(bytes, head, slice.name + std::string(kScales), "F32", {slice.shape[0]});
    for (std::int64_t i = 0; i < slice.shape[0]; ++i, scales += sizeof(float)) {
      float scale = 0;
      std::memcpy(&scale, scales, sizeof scale);
      for (std::int64_t j = 0; j < slice.shape[1]; ++j) {
        *to++ = scale * static_cast<float>(static_cast<std::int8_t>(*from++));
      }
    }
  }
  return model;
}

}  // namespace posenc::lab
