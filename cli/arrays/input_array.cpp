#include "cli/arrays/input_array.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "cli/system/failure.h"
#include "cli/system/input_file.h"
#include "cli/system/signals.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/safetensors.h"

namespace posenc::cli {
namespace {

static_assert(std::endian::native == std::endian::little, "files are read as the machine's own bytes");

template <class Read> auto with_file_name(const std::string& path, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", path, error.what()));
  }
}

bool is_floating(DataType type) { return type != DataType::kI64; }

void read_bytes(const Descriptor& file, const std::string& path, std::int64_t offset, std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t count = pread(file.number(), out.data(), out.size(), offset);
    if (count > 0) {
      offset += count;
      out = out.subspan(count);
    } else if (count == 0) {
      refuse(fmt::format("{}: byte {}: unexpected end; the file became shorter while it was read", path, offset));
    } else if (errno == EINTR) {
      stop_if_signalled();
    } else {
      fail_with_errno(path, errno);
    }
  }
}

}  // namespace

InputArray::InputArray(const std::string& text, const NpyOptions& options) : path_(text) {
  const ArrayName name = array_name_from(text);
  file_ = open_regular(name.path, file_size_);
  switch (name.format) {
    case ArrayFormat::kNpy:
      open_npy(options);
      break;
    case ArrayFormat::kNpz:
      open_npz(name, options);
      break;
    case ArrayFormat::kSafetensors:
      open_safetensors(name);
      break;
  }
}

void InputArray::open_npy(const NpyOptions& options) {
  std::vector<std::byte> front(std::min(file_size_, kNpyHeadBytes));
  read_file(0, front);
  if (take_head(with_file_name(path_, [&] { return read_npy_head(front, file_size_, options); }))) return;
  std::vector<std::byte> whole(file_size_);
  read_file(0, whole);
  loaded_ = with_file_name(path_, [&] { return read_npy(whole, options).bytes; });
  is_loaded_ = true;
}

void InputArray::open_npz(const ArrayName& name, const NpyOptions& options) {
  const std::vector<NpzMember> members = with_file_name(name.path, [&] { return read_npz_directory(source()); });
  std::vector<std::string_view> names;
  for (const NpzMember& member : members) names.push_back(member.name);
  member_ = members[choose_array(name, names)];
  std::vector<std::byte> front(std::min(member_->bytes, kNpyHeadBytes));
  read_member(0, front);
  // from here on, offsets are within the member
  const std::string within = fmt::format("{}: member {}", name.path, dump_json(shortened(member_->name)));
  if (take_head(with_file_name(within, [&] { return read_npy_head(front, member_->bytes, options); }))) return;
  std::vector<std::byte> whole(member_->bytes);
  read_member(0, whole);
  loaded_ = with_file_name(within, [&] { return read_npy(whole, options).bytes; });
  is_loaded_ = true;
}

void InputArray::open_safetensors(const ArrayName& name) {
  const SafetensorsHead head = with_file_name(name.path, [&] { return read_safetensors_head(source()); });
  std::vector<std::string_view> names;
  for (const SafetensorsTensor& tensor : head.tensors) names.push_back(tensor.name);
  const SafetensorsTensor& tensor = head.tensors[choose_array(name, names)];
  if (!tensor.type) {
    // numbers of 8 bits mean little without their scale, which is in no fixed place
    const bool is_narrow = tensor.dtype.starts_with("F8") || tensor.dtype.starts_with("F6") || tensor.dtype == "F4";
    refuse(fmt::format("{}: tensor {} has type {}; posenc reads F32, F64, F16, BF16 and I64{}", name.path,
                       dump_json(shortened(tensor.name)), tensor.dtype,
                       is_narrow ? " (multiply it by its scale, and save that as F32)" : ""));
  }
  type_ = *tensor.type;
  shape_ = tensor.shape;
  data_offset_ = tensor.offset;
}

// Whether its bytes are the elements in order. Integers may be stored narrower than they are returned.
bool InputArray::take_head(NpyHead head) {
  type_ = head.type;
  shape_ = head.shape;
  data_offset_ = head.data_offset;
  notes_ = std::move(head.notes);
  return !head.fortran_order && !head.big_endian && is_floating(head.type);
}

ByteSource InputArray::source() const {
  return {file_size_, [this](std::int64_t offset, std::span<std::byte> out) { read_file(offset, out); }};
}

bool InputArray::is_same_file(const std::string& path) const {
  struct stat ours {};
  struct stat other {};
  return fstat(file_.number(), &ours) == 0 && stat(path.c_str(), &other) == 0 && ours.st_dev == other.st_dev &&
         ours.st_ino == other.st_ino;
}

void InputArray::read(std::int64_t first, std::span<std::byte> out) const {
  const std::int64_t begin = first * size_of(type_);
  if (is_loaded_) {
    if (!out.empty()) std::memcpy(out.data(), loaded_.data() + begin, out.size());
  } else if (member_) {
    read_member(data_offset_ + begin, out);
  } else {
    read_file(data_offset_ + begin, out);
  }
}

void InputArray::read_member(std::int64_t offset, std::span<std::byte> out) const {
  with_file_name(array_name_from(path_).path, [&] {
    if (!stream_ || stream_->position() > offset) stream_.emplace(source(), *member_);
    stream_->skip(offset - stream_->position());
    stream_->read(out);
  });
}

void InputArray::read_file(std::int64_t offset, std::span<std::byte> out) const {
  read_bytes(file_, path_, offset, out);
}

std::vector<std::string> safetensors_names(const std::string& path) {
  std::int64_t size = 0;
  const Descriptor file = open_regular(path, size);
  const ByteSource source(
      size, [&](std::int64_t offset, std::span<std::byte> out) { read_bytes(file, path, offset, out); });
  std::vector<std::string> names;
  for (SafetensorsTensor& one : with_file_name(path, [&] { return read_safetensors_head(source); }).tensors) {
    names.push_back(std::move(one.name));
  }
  return names;
}

NpyArray load_array(const InputArray& input) {
  NpyArray array;
  array.type = input.type();
  array.shape = input.shape();
  array.bytes.resize(count_of(input.shape()) * size_of(input.type()));
  input.read(0, array.bytes);
  return array;
}

}  // namespace posenc::cli
