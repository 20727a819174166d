#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/arrays/array_name.h"
#include "cli/system/descriptor.h"
#include "posenc/npy.h"
#include "posenc/npz.h"

namespace posenc::cli {

/// An array in a file, x.npy, x.npz:name or x.safetensors:name, read in pieces, so that it may be of any size.
class InputArray {
 public:
  /// Throws: Failure "FILE: byte OFFSET: WHAT" for anything but a regular file that contains a valid array.
  explicit InputArray(const std::string& text, const NpyOptions& options = {});
  // the reader of an archive member points here
  InputArray(const InputArray&) = delete;
  InputArray& operator=(const InputArray&) = delete;

  /// As the user wrote it.
  const std::string& path() const { return path_; }
  DataType type() const { return type_; }
  const Extents& shape() const { return shape_; }
  /// What was accepted although it is unusual.
  const std::vector<std::string>& notes() const { return notes_; }
  /// Whether this name refers to the same file.
  bool is_same_file(const std::string& path) const;

  /// Fills `out` with the array's elements, last axis contiguous, from element `first` on. Going backwards in an
  /// archive member restarts it.
  void read(std::int64_t first, std::span<std::byte> out) const;

 private:
  void open_npy(const NpyOptions& options);
  void open_npz(const ArrayName& name, const NpyOptions& options);
  void open_safetensors(const ArrayName& name);
  bool take_head(NpyHead head);
  ByteSource source() const;
  void read_member(std::int64_t offset, std::span<std::byte> out) const;
  void read_file(std::int64_t offset, std::span<std::byte> out) const;

  std::string path_;
  Descriptor file_;
  std::int64_t file_size_ = 0;
  DataType type_ = DataType::kF32;
  Extents shape_;
  std::vector<std::string> notes_;
  std::int64_t data_offset_ = 0;  // in the file, or in the member
  std::optional<NpzMember> member_;
  mutable std::optional<NpzStream> stream_;
  // the whole array, for files whose bytes are not its elements in order
  std::vector<std::byte> loaded_;
  bool is_loaded_ = false;
};

/// The names of the tensors in a .safetensors file.
/// Throws: Failure as InputArray.
std::vector<std::string> safetensors_names(const std::string& path);

/// The whole array in memory.
NpyArray load_array(const InputArray& input);

}  // namespace posenc::cli
