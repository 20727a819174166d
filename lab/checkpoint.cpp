#include <fmt/format.h>

#include <cstring>
#include <map>

#include "lab/train.h"
#include "posenc/error.h"
#include "posenc/safetensors.h"

namespace posenc::lab {
namespace {

constexpr std::string_view kFormat = "posenc-lab-1";
constexpr std::string_view kFirst = "adamw.first.", kSecond = "adamw.second.", kMetrics = "metrics";
constexpr std::int64_t kMetricColumns = 5;

std::string_view bytes_of(const void* data, std::size_t size) { return {static_cast<const char*>(data), size}; }

std::string metadata_of(const SafetensorsHead& head, std::string_view name) {
  for (const auto& [key, value] : head.metadata) {
    if (key == name) return value;
  }
  raise(fmt::format("lab: this is no checkpoint of the lab: its metadata has no \"{}\"", name));
}

void copy_tensor(std::string_view file, const SafetensorsHead& head, const std::string& name, const Slice& slice,
                 std::vector<float>& to) {
  const SafetensorsTensor* const tensor = head.find(name);
  if (tensor == nullptr) raise(fmt::format("lab: the checkpoint has no tensor '{}'", name));
  if (tensor->type != DataType::kF32 || tensor->shape != slice.shape) {
    raise(fmt::format("lab: '{}' in the checkpoint must be F32 {} but is {} {}", name, to_string(slice.shape),
                      tensor->dtype, to_string(tensor->shape)));
  }
  std::memcpy(to.data() + slice.offset, file.data() + tensor->offset, tensor->bytes);
}

// The config that `posenc inspect` reads: how the model encodes position.
std::string config_of(const Network<float>& network) {
  const Shape& shape = network.shape;
  return dump_json(Json::Object{{"model_type", "posenc-lab"},
                                {"position", json_of(scheme_of(shape, network.layout, network.parameters.data()))},
                                {"num_hidden_layers", shape.layers},
                                {"num_attention_heads", shape.heads},
                                {"hidden_size", shape.width},
                                {"vocab_size", shape.vocabulary},
                                {"max_position_embeddings", shape.context},
                                {"is_causal", shape.causal}});
}

}  // namespace

std::string shown_fingerprint(const Text& text) { return fmt::format("{:016x}", text.fingerprint); }

std::string checkpoint_of(const State& state, const Job& job, const Text& text) {
  SafetensorsHead head;
  std::map<std::string, std::string_view, std::less<>> data;
  const auto add = [&](std::string name, DataType type, const Extents& shape, std::string_view bytes) {
    data[name] = bytes;
    SafetensorsTensor tensor;
    tensor.name = std::move(name);
    tensor.type = type;
    tensor.shape = shape;
    head.tensors.push_back(std::move(tensor));
  };
  for (const Slice& slice : state.network.layout.slices) {
    const auto part = [&](const std::vector<float>& values) {
      return bytes_of(values.data() + slice.offset, slice.count * sizeof(float));
    };
    add(slice.name, DataType::kF32, slice.shape, part(state.network.parameters));
    add(std::string(kFirst) + slice.name, DataType::kF32, slice.shape, part(state.first));
    add(std::string(kSecond) + slice.name, DataType::kF32, slice.shape, part(state.second));
  }
  static_assert(sizeof(Metric) == kMetricColumns * sizeof(double));
  add(std::string(kMetrics), DataType::kF64, {static_cast<std::int64_t>(state.metrics.size()), kMetricColumns},
      bytes_of(state.metrics.data(), state.metrics.size() * sizeof(Metric)));
  head.metadata = {{"config", config_of(state.network)},
                   {"format", std::string(kFormat)},
                   {"job", dump_json(to_json(job))},
                   {"step", fmt::format("{}", state.step)},
                   {"text", shown_fingerprint(text)}};
  std::string bytes = lay_out_safetensors(head);
  for (const SafetensorsTensor& tensor : head.tensors) bytes += data.find(tensor.name)->second;
  return bytes;
}

Checkpoint read_checkpoint(std::string_view bytes) {
  const std::span<const std::byte> file(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
  const SafetensorsHead head = read_safetensors_head(ByteSource(file));
  if (const std::string format = metadata_of(head, "format"); format != kFormat) {
    raise(fmt::format("lab: the checkpoint's format is '{}' but must be '{}'", format, kFormat));
  }
  Checkpoint checkpoint;
  checkpoint.job = job_from_json(parse_json(metadata_of(head, "job")));
  checkpoint.text_fingerprint = metadata_of(head, "text");
  const Json step = parse_json(metadata_of(head, "step"));
  if (step.as<std::int64_t>() == nullptr || *step.as<std::int64_t>() < 0)
    raise("lab: the checkpoint's step is no number");
  State& state = checkpoint.state;
  state = begin(checkpoint.job);
  state.step = *step.as<std::int64_t>();
  for (const Slice& slice : state.network.layout.slices) {
    copy_tensor(bytes, head, slice.name, slice, state.network.parameters);
    copy_tensor(bytes, head, std::string(kFirst) + slice.name, slice, state.first);
    copy_tensor(bytes, head, std::string(kSecond) + slice.name, slice, state.second);
  }
  const SafetensorsTensor* const metrics = head.find(kMetrics);
  if (metrics == nullptr || metrics->type != DataType::kF64 || metrics->shape.rank != 2 ||
      metrics->shape[1] != kMetricColumns) {
    raise("lab: the checkpoint has no tensor 'metrics' of F64 [steps, 5]");
  }
  state.metrics.resize(metrics->shape[0]);
  if (!state.metrics.empty()) {
    std::memcpy(state.metrics.data(), bytes.data() + metrics->offset, metrics->bytes);
  }
  return checkpoint;
}

}  // namespace posenc::lab
