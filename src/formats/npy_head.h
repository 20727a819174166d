#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "posenc/npy.h"

namespace posenc {

/// How an element is stored in a .npy file.
struct NpyElement {
  char kind = 'f';  ///< f: float, i: signed, u: unsigned, b: bool, V: the two bytes of a bf16
  std::int64_t size = 4;
  bool big_endian = false;
  DataType type = DataType::kF32;  ///< the type it is read as
};

/// A header that was checked against the size of its file.
struct CheckedNpyHead {
  NpyHead head;
  NpyElement element;
  std::int64_t data_size = 0;  ///< bytes of all elements in the file
};

/// Throws: as read_npy_head.
CheckedNpyHead check_npy_head(std::span<const std::byte> bytes, std::int64_t file_size, const NpyOptions& options);

}  // namespace posenc
