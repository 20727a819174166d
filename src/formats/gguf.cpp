#include "posenc/gguf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "formats/byte_reader.h"
#include "formats/excerpt.h"
#include "formats/gguf_dtype.h"
#include "formats/gguf_value.h"
#include "formats/view_within.h"

namespace posenc {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are shown in the machine's own byte order");

constexpr std::uint64_t kMostEntries = 1'000'000;
constexpr std::uint64_t kLongestKey = 65'535;
constexpr std::uint64_t kLongestTensorName = 64;
constexpr std::uint64_t kLargestAlignment = 1 << 20;
constexpr std::uint32_t kMostDims = 4;
// The smallest entries. Metadata: a text of one byte, a type, a value of one byte. Tensor: an empty text, one
// dimension, type, offset.
constexpr std::uint64_t kShortestEntry = 8 + 1 + 4 + 1;
constexpr std::uint64_t kShortestTensor = 8 + 4 + 8 + 4 + 8;

struct Counts {
  std::uint64_t tensors = 0;
  std::uint64_t entries = 0;
};

std::uint64_t take_count(ByteReader& reader, std::string_view what) {
  const std::uint64_t at = reader.offset();
  const std::uint64_t count = reader.u64(fmt::format("the number of {}", what));
  if (count > kMostEntries) raise_at(at, fmt::format("there are {} {}, the limit is {}", count, what, kMostEntries));
  return count;
}

/// Up to the metadata: magic, version, counts.
Counts take_front(ByteReader& reader, GgufHead& head) {
  if (reader.remaining() == 0) raise_at(0, "the file is empty");
  const auto magic = reader.take(std::min<std::uint64_t>(4, reader.remaining()), "the magic");
  if (std::memcmp(magic.data(), "GGUF", magic.size()) != 0) raise_at(0, "not a .gguf file (it begins otherwise)");
  if (magic.size() < 4) raise_at(0, fmt::format("the file ends after {} bytes, too short for .gguf", magic.size()));
  head.version = reader.u32("its version");
  if (head.version != 0 && (head.version & 0xFFFFU) == 0) {
    raise_at(4, "the file is big-endian (only little-endian ones are read)");
  }
  if (head.version != 2 && head.version != 3) {
    raise_at(4, fmt::format("version {} is not read (2 and 3 are)", head.version));
  }
  Counts counts;
  counts.tensors = take_count(reader, "tensors");
  counts.entries = take_count(reader, "metadata entries");
  if (counts.entries > reader.remaining() / kShortestEntry) {
    raise_at(16, fmt::format("{} metadata entries need at least {} bytes each but {} remain", counts.entries,
                             kShortestEntry, reader.remaining()));
  }
  return counts;
}

GgufEntry take_entry(ByteReader& reader) {
  const std::uint64_t at = reader.offset();
  GgufEntry entry;
  entry.key = take_gguf_text(reader, kLongestKey, "a key");
  if (entry.key.empty()) raise_at(at, "a key must not be empty");
  for (const char c : entry.key) {
    if (c < ' ' || c > '~') raise_at(at, fmt::format("key {} must be printable ASCII", quoted(entry.key)));
  }
  entry.value = take_gguf_value(reader);
  return entry;
}

/// `offsets` are those of the items; sorting is for files with very many.
template <class Thing, class NameOf> void refuse_repeated(const std::vector<Thing>& things,
                                                          const std::vector<std::uint64_t>& offsets,
                                                          const NameOf& name_of, std::string_view what) {
  std::vector<std::size_t> order(things.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const int compared = name_of(things[a]).compare(name_of(things[b]));
    return compared != 0 ? compared < 0 : a < b;
  });
  std::size_t repeated = things.size();
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (name_of(things[order[i - 1]]) == name_of(things[order[i]])) repeated = std::min(repeated, order[i]);
  }
  if (repeated == things.size()) return;
  raise_at(offsets[repeated], fmt::format("repeated {} {}", what, quoted(name_of(things[repeated]))));
}

void take_metadata(ByteReader& reader, std::uint64_t count, GgufHead& head) {
  std::vector<std::uint64_t> offsets;
  head.metadata.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    offsets.push_back(reader.offset());
    GgufEntry entry = take_entry(reader);
    if (entry.key == "general.alignment") {
      const auto* const alignment = entry.value.as<std::uint64_t>();
      if (entry.value.type != GgufType::kU32) raise_at(offsets.back(), "general.alignment must be a u32");
      if (!std::has_single_bit(*alignment) || *alignment > kLargestAlignment) {
        raise_at(offsets.back(), fmt::format("general.alignment must be a power of two up to {} but is {}",
                                             kLargestAlignment, *alignment));
      }
      head.alignment = static_cast<std::int64_t>(*alignment);
    }
    head.metadata.push_back(std::move(entry));
  }
  refuse_repeated(
      head.metadata, offsets, [](const GgufEntry& entry) { return entry.key; }, "key");
}

Extents take_shape(ByteReader& reader, std::string_view name) {
  const std::uint64_t at = reader.offset();
  const std::uint32_t dims = reader.u32("the number of dimensions");
  if (dims < 1 || dims > kMostDims) {
    raise_at(at, fmt::format("tensor {} must have 1 to {} dimensions but has {}", quoted(name), kMostDims, dims));
  }
  Extents shape;
  for (std::uint32_t i = 0; i < dims; ++i) {
    const std::uint64_t extent_at = reader.offset();
    const auto extent = static_cast<std::int64_t>(reader.u64("an extent"));
    if (extent < 1) {
      raise_at(extent_at, fmt::format("an extent of tensor {} must be from 1 to 2^63 - 1 but is {}", quoted(name),
                                      static_cast<std::uint64_t>(extent)));
    }
    shape.push_back(extent);
  }
  std::reverse(shape.value.begin(), shape.value.begin() + shape.rank);
  return shape;
}

/// Its offset stays as in the file: counted from the start of the data, which is not known yet.
GgufTensor take_tensor(ByteReader& reader, std::int64_t alignment) {
  GgufTensor tensor;
  tensor.name = take_gguf_text(reader, kLongestTensorName, "the name of a tensor");
  const std::uint64_t shape_at = reader.offset();
  tensor.shape = take_shape(reader, tensor.name);
  const std::uint64_t type_at = reader.offset();
  const std::uint32_t number = reader.u32("the type of a tensor");
  const GgufDtype* const dtype = find_gguf_dtype(number);
  if (dtype == nullptr)
    raise_at(type_at, fmt::format("type {} of tensor {} is unknown", number, quoted(tensor.name)));
  tensor.dtype = dtype->name;
  tensor.type = dtype->type;
  if (tensor.shape.back(0) % dtype->elements != 0) {
    raise_at(shape_at, fmt::format("tensor {} has rows of {} elements, but {} comes in blocks of {}",
                                   quoted(tensor.name), tensor.shape.back(0), dtype->name, dtype->elements));
  }
  const std::int64_t count = count_of(tensor.shape);
  if (count < 0 || __builtin_mul_overflow(count / dtype->elements, dtype->bytes, &tensor.bytes)) {
    raise_at(shape_at, fmt::format("tensor {} of shape {} has more bytes than 2^63", quoted(tensor.name),
                                   to_string(tensor.shape)));
  }
  const std::uint64_t offset_at = reader.offset();
  const std::uint64_t offset = reader.u64("the offset of a tensor");
  if (offset % static_cast<std::uint64_t>(alignment) != 0) {
    raise_at(offset_at, fmt::format("tensor {} begins at {} of the data, which is no multiple of {}",
                                    quoted(tensor.name), offset, alignment));
  }
  tensor.offset = static_cast<std::int64_t>(std::min(offset, std::uint64_t{1} << 62U));  // past the end of any file
  return tensor;
}

/// Converts offsets to those in the file. Each tensor must be within it, and no two may share a byte.
void check_places(GgufHead& head, const std::vector<std::uint64_t>& infos, std::int64_t file_size) {
  std::vector<std::size_t> order(head.tensors.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
    GgufTensor& tensor = head.tensors[i];
    const std::int64_t data_size = std::max<std::int64_t>(file_size - head.data_offset, 0);
    if (tensor.offset > data_size || tensor.bytes > data_size - tensor.offset) {
      raise_at(infos[i], fmt::format("tensor {} needs {} bytes from {} of the data on, of which there are {} (the "
                                     "file is truncated)",
                                     quoted(tensor.name), tensor.bytes, tensor.offset, data_size));
    }
    tensor.offset += head.data_offset;
  }
  const auto begin_of = [&](std::size_t i) { return head.tensors[i].offset; };
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return begin_of(a) < begin_of(b); });
  for (std::size_t i = 1; i < order.size(); ++i) {
    const GgufTensor& before = head.tensors[order[i - 1]];
    const GgufTensor& tensor = head.tensors[order[i]];
    if (tensor.offset - before.offset < before.bytes) {
      raise_at(infos[order[i]],
               fmt::format("tensor {} overlaps tensor {}", quoted(tensor.name), quoted(before.name)));
    }
  }
}

}  // namespace

const GgufValue* GgufHead::find(std::string_view key) const {
  for (const GgufEntry& entry : metadata) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

const GgufTensor* GgufHead::find_tensor(std::string_view name) const {
  for (const GgufTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

GgufHead read_gguf_head(std::span<const std::byte> file) {
  GgufHead head;
  ByteReader reader(file);
  const Counts counts = take_front(reader, head);
  take_metadata(reader, counts.entries, head);
  if (counts.tensors > reader.remaining() / kShortestTensor) {
    raise_at(8, fmt::format("{} tensors need at least {} bytes each but {} remain", counts.tensors, kShortestTensor,
                            reader.remaining()));
  }
  std::vector<std::uint64_t> infos;
  head.tensors.reserve(counts.tensors);
  for (std::uint64_t i = 0; i < counts.tensors; ++i) {
    infos.push_back(reader.offset());
    head.tensors.push_back(take_tensor(reader, head.alignment));
  }
  refuse_repeated(
      head.tensors, infos, [](const GgufTensor& tensor) { return tensor.name; }, "tensor");
  const std::int64_t end = static_cast<std::int64_t>(reader.offset());
  head.data_offset = (end + head.alignment - 1) / head.alignment * head.alignment;
  check_places(head, infos, static_cast<std::int64_t>(file.size()));
  return head;
}

ConstTensorView gguf_view(std::span<const std::byte> file, const GgufTensor& tensor) {
  if (!tensor.type) {
    raise(fmt::format("tensor {}: type {} is not read (F32, F64, F16, BF16 and I64 are)", quoted(tensor.name),
                      tensor.dtype));
  }
  return view_within(file, tensor.offset, tensor.bytes, {nullptr, *tensor.type, tensor.shape}, tensor.name);
}

}  // namespace posenc
