#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "posenc/tensor.h"

namespace posenc {

/// This many bytes from the start of a file always contain the head: the preamble and at most 10,000 bytes of header.
inline constexpr std::int64_t kNpyHeadBytes = 12 + 10'000;

/// The head of a .npy file.
struct NpyHead {
  DataType type = DataType::kF32;
  std::int64_t stored_size = 4;  ///< bytes per element in the file: fewer than `type` has if integers are widened
  Extents shape;
  bool fortran_order = false;
  bool big_endian = false;
  std::int64_t data_offset = 0;    ///< bytes before the first element
  std::vector<std::string> notes;  ///< unusual things that were accepted
};

struct NpyOptions {
  bool allow_trailing = false;  ///< accept bytes after the last element
  bool void2_is_bf16 = false;   ///< read `|V2` (what NumPy calls a bf16 array) as bf16
  bool uint16_is_bf16 = false;  ///< read u2 as the bits of bf16, as many programs save them, and add a note
};

/// An array that owns its bytes: little-endian, dense, last axis contiguous.
struct NpyArray {
  DataType type = DataType::kF32;
  Extents shape;
  std::vector<std::byte> bytes;
  std::vector<std::string> notes;

  ConstTensorView view() const { return {bytes.data(), type, shape}; }
  TensorView view() { return {bytes.data(), type, shape}; }
};

/// Reads the head from the first bytes of a file that is `file_size` bytes long: all of them, or kNpyHeadBytes. Nothing
/// is evaluated as Python: the header must be a dictionary of exactly descr, fortran_order and shape.
/// Throws: Error "byte OFFSET: WHAT (hint)".
NpyHead read_npy_head(std::span<const std::byte> bytes, std::int64_t file_size, const NpyOptions& options = {});

/// Reads a whole file: swaps big-endian elements, transposes Fortran order.
/// Bools and narrower integers are widened to i64.
/// Throws: as read_npy_head, and for a u8 past 2^63 - 1 or a bool that is neither 0 nor 1.
NpyArray read_npy(std::span<const std::byte> bytes, const NpyOptions& options = {});

/// The head of a version 1.0 file, padded so that the data begins at a multiple of 64.
/// bf16 is written as `<V2`, like NumPy's extension types.
std::string npy_head(DataType type, const Extents& shape);

}  // namespace posenc
