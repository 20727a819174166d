#include "posenc/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <tuple>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"
#include "formats/json_builder.h"
#include "formats/safetensors_dtype.h"
#include "formats/view_within.h"

namespace posenc {
namespace {

constexpr std::int64_t kBeforeHeader = 8;
constexpr std::int64_t kLongestHeader = 100'000'000;
constexpr std::size_t kMostTensors = 1'000'000;
constexpr std::string_view kMetadata = "__metadata__";

// The limit on values applies to one tensor, or to the metadata.
constexpr JsonLimits kLimits = {.depth = 3, .bytes = kLongestHeader, .values = 100'000, .text = 16 << 20};

std::int64_t header_length(const ByteSource& file) {
  if (file.size == 0) raise_at(0, "the file is empty");
  std::array<std::byte, kBeforeHeader> front{};
  const std::size_t present = std::min(file.size, kBeforeHeader);
  file.read(0, std::span(front).first(present));
  const std::uint64_t length = ByteReader(std::span(front).first(present)).u64("the header length");
  if (length > static_cast<std::uint64_t>(kLongestHeader)) {
    raise_at(0, fmt::format("the header is {} bytes long, the limit is {} (is it a .safetensors file?)", length,
                            kLongestHeader));
  }
  const std::int64_t remaining = file.size - kBeforeHeader;
  if (static_cast<std::int64_t>(length) > remaining) {
    raise_at(
        0, fmt::format("the header is {} bytes long but only {} remain (the file is truncated)", length, remaining));
  }
  return static_cast<std::int64_t>(length);
}

/// Receives the members of the header, each a tensor or the metadata. Returns what is wrong with one.
class HeadBuilder {
 public:
  HeadBuilder(SafetensorsHead& head, std::int64_t data_size) : head_(head), data_size_(data_size) {}

  std::string add(std::string key, Json value) {
    if (key == kMetadata) return add_metadata(std::move(value));
    if (key.size() > kLongestSafetensorsName) {
      return fmt::format("tensor {}: the name is {} bytes long, the limit is {}", quoted(key), key.size(),
                         kLongestSafetensorsName);
    }
    if (head_.tensors.size() == kMostTensors) return fmt::format("more than {} tensors", kMostTensors);
    SafetensorsTensor tensor;
    std::string wrong = read_tensor(value, tensor);
    if (!wrong.empty()) return fmt::format("tensor {}: {}", quoted(key), wrong);
    tensor.name = std::move(key);
    head_.tensors.push_back(std::move(tensor));
    return {};
  }

 private:
  std::string add_metadata(Json value) {
    if (has_metadata_) return fmt::format("repeated key \"{}\"", kMetadata);
    has_metadata_ = true;
    Json::Value taken = std::move(value).take();
    auto* const object = std::get_if<Json::Object>(&taken);
    if (object == nullptr) return fmt::format("{} must be an object of texts", kMetadata);
    for (auto& [key, member] : *object) {
      Json::Value inner = std::move(member).take();
      auto* const text = std::get_if<std::string>(&inner);
      if (text == nullptr) return fmt::format("{}: {} must be a text", kMetadata, quoted(key));
      head_.metadata.emplace_back(std::move(key), std::move(*text));
    }
    return {};
  }

  std::string read_tensor(const Json& value, SafetensorsTensor& tensor) const {
    const auto* const object = value.as<Json::Object>();
    if (object == nullptr) return "must be an object with dtype, shape and data_offsets";
    for (const auto& [key, unused] : *object) {
      if (key == "dtype" || key == "shape" || key == "data_offsets") continue;
      return fmt::format("unknown key {} (only dtype, shape and data_offsets may be there)", quoted(key));
    }
    for (const std::string_view key : {"dtype", "shape", "data_offsets"}) {
      if (value.find(key) == nullptr) return fmt::format("key \"{}\" is missing", key);
    }
    const auto* const dtype_name = value.find<std::string>("dtype");
    if (dtype_name == nullptr) return "dtype must be a text such as \"F32\"";
    const SafetensorsDtype* const dtype = find_safetensors_dtype(*dtype_name);
    if (dtype == nullptr) return fmt::format("dtype {} is unknown", quoted(*dtype_name));
    tensor.dtype = dtype->name;
    tensor.type = dtype->type;
    std::string wrong = read_shape(*value.find("shape"), tensor.shape);
    if (wrong.empty()) wrong = read_offsets(*value.find("data_offsets"), tensor);
    return wrong.empty() ? check_size(*dtype, tensor) : wrong;
  }

  static std::string read_shape(const Json& value, Extents& shape) {
    const auto* const extents = value.as<Json::Array>();
    if (extents == nullptr) return "shape must be a list of integers";
    if (extents->size() > Extents::kMax) {
      return fmt::format("shape must have at most {} dimensions but has {}", Extents::kMax, extents->size());
    }
    for (const Json& item : *extents) {
      const auto* const extent = item.as<std::int64_t>();
      if (extent == nullptr) return fmt::format("an extent must be an integer but is {}", excerpt(dump_json(item)));
      if (*extent < 0) return fmt::format("an extent must not be negative but is {}", *extent);
      shape.push_back(*extent);
    }
    return {};
  }

  std::string read_offsets(const Json& value, SafetensorsTensor& tensor) const {
    constexpr std::string_view kRule = "data_offsets must be two integers, where the data begins and where it ends";
    const auto* const list = value.as<Json::Array>();
    if (list == nullptr || list->size() != 2) return std::string(kRule);
    const auto* const begin = (*list)[0].as<std::int64_t>();
    const auto* const end = (*list)[1].as<std::int64_t>();
    if (begin == nullptr || end == nullptr) return std::string(kRule);
    if (*begin < 0) return fmt::format("data_offsets must not be negative but begin at {}", *begin);
    if (*end < *begin) return fmt::format("data_offsets end at {}, before they begin at {}", *end, *begin);
    if (*end > data_size_) {
      return fmt::format("data_offsets end at {} but there are {} bytes of data (the file is truncated)", *end,
                         data_size_);
    }
    tensor.offset = *begin;
    tensor.bytes = *end - *begin;
    return {};
  }

  static std::string check_size(const SafetensorsDtype& dtype, const SafetensorsTensor& tensor) {
    const std::int64_t bytes = safetensors_bytes(dtype, tensor.shape);
    if (bytes == -1)
      return fmt::format("{} of shape {} has more bits than 2^63", dtype.name, to_string(tensor.shape));
    if (bytes == -2)
      return fmt::format("{} of shape {} does not fill its last byte", dtype.name, to_string(tensor.shape));
    if (bytes != tensor.bytes) {
      return fmt::format("{} of shape {} has {} bytes but data_offsets span {}", dtype.name, to_string(tensor.shape),
                         bytes, tensor.bytes);
    }
    return {};
  }

  SafetensorsHead& head_;
  std::int64_t data_size_ = 0;
  bool has_metadata_ = false;
};

/// Sorts, because there may be a million. The header is read again, to find the place, only if a name is repeated.
void refuse_repeated_names(const std::vector<SafetensorsTensor>& tensors, std::string_view header) {
  std::vector<std::size_t> order(tensors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = tensors[a].name.compare(tensors[b].name);
    return compared != 0 ? compared < 0 : a < b;
  });
  std::size_t repeated = tensors.size();
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (tensors[order[i - 1]].name == tensors[order[i]].name) repeated = std::min(repeated, order[i]);
  }
  if (repeated == tensors.size()) return;
  std::size_t index = 0;
  read_json_members(header, kBeforeHeader, kLimits, [&](const std::string& key, const Json&) {
    if (key == kMetadata || index++ != repeated) return std::string();
    return fmt::format("repeated tensor {}", quoted(key));
  });
}

/// Sorts the tensors by their bytes. These must fill the file from the header to its end: unowned bytes could hold
/// anything, and bytes with two owners suggest tampering.
void check_places(SafetensorsHead& head, std::int64_t data_size) {
  std::vector<SafetensorsTensor>& tensors = head.tensors;
  const auto is_before = [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
    return std::tie(a.offset, a.bytes) < std::tie(b.offset, b.bytes);
  };
  if (!std::is_sorted(tensors.begin(), tensors.end(), is_before)) {
    // not stable_sort, which would double the memory
    std::sort(tensors.begin(), tensors.end(), [](const SafetensorsTensor& a, const SafetensorsTensor& b) {
      return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
    });
  }
  std::int64_t end = 0;
  for (SafetensorsTensor& tensor : tensors) {
    if (tensor.offset != end) {
      raise_at(static_cast<std::uint64_t>(head.data_offset + std::min(tensor.offset, end)),
               fmt::format("tensor {} begins at {} of the data but the one before it ends at {} ({})",
                           quoted(tensor.name), tensor.offset, end, tensor.offset > end ? "a hole" : "they overlap"));
    }
    end += tensor.bytes;
    tensor.offset += head.data_offset;
  }
  if (end != data_size) {
    raise_at(static_cast<std::uint64_t>(head.data_offset + end),
             fmt::format("{} bytes follow the last tensor", data_size - end));
  }
}

}  // namespace

const SafetensorsTensor* SafetensorsHead::find(std::string_view name) const {
  for (const SafetensorsTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

SafetensorsHead read_safetensors_head(const ByteSource& file) {
  // the smallest tensor: "":{"dtype":"F4","shape":[],"data_offsets":[0,0]},
  constexpr std::size_t kShortestHeaderEntry = 50;
  std::string header(header_length(file), '\0');
  file.read(kBeforeHeader, std::as_writable_bytes(std::span(header)));
  if (!header.starts_with('{')) raise_at(kBeforeHeader, "the header must be a JSON object and begin with '{'");

  SafetensorsHead head;
  head.data_offset = kBeforeHeader + static_cast<std::int64_t>(header.size());
  head.tensors.reserve(std::min(header.size() / kShortestHeaderEntry, kMostTensors));
  const std::int64_t data_size = file.size - head.data_offset;
  HeadBuilder builder(head, data_size);
  read_json_members(header, kBeforeHeader, kLimits,
                    [&](std::string key, Json value) { return builder.add(std::move(key), std::move(value)); });
  refuse_repeated_names(head.tensors, header);
  header = {};
  check_places(head, data_size);
  return head;
}

ConstTensorView safetensors_view(std::span<const std::byte> file, const SafetensorsTensor& tensor) {
  if (!tensor.type) {
    raise(fmt::format("tensor {}: dtype {} is not read (F32, F64, F16, BF16 and I64 are)", quoted(tensor.name),
                      tensor.dtype));
  }
  return view_within(file, tensor.offset, tensor.bytes, {nullptr, *tensor.type, tensor.shape}, tensor.name);
}

}  // namespace posenc
