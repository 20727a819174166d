#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cli/descriptor.h"
#include "posenc/npy.h"

namespace posenc::cli {

/// An array in a .npy file, read piece by piece, so that its size does not matter.
class InputArray {
 public:
  /// Throws: Failure "FILE: byte OFFSET: WHAT" for anything but a regular file with a good .npy inside.
  explicit InputArray(const std::string& path, const NpyOptions& options = {});

  const std::string& path() const { return path_; }
  DataType type() const { return head_.type; }
  const Extents& shape() const { return head_.shape; }
  /// What was accepted though it is unusual.
  const std::vector<std::string>& notes() const { return head_.notes; }
  /// Whether this name leads to the same file.
  bool is_same_file(const std::string& path) const;

  /// Fills `out` from the array's elements, last axis contiguous, from element `first` on.
  void read(std::int64_t first, std::span<std::byte> out) const;

 private:
  void read_file(std::int64_t offset, std::span<std::byte> out) const;

  std::string path_;
  Descriptor file_;
  NpyHead head_;
  // the whole array, for files whose bytes are not its elements in order
  std::vector<std::byte> loaded_;
  bool is_loaded_ = false;
};

/// The whole array in memory.
NpyArray load_array(const InputArray& input);

}  // namespace posenc::cli
