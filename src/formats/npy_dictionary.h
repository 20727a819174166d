#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/tensor.h"

namespace posenc {

/// The contents of the dictionary in a .npy header, with the offset of each entry in the file.
struct NpyDictionary {
  std::string_view descr;  ///< without its quotes; a part of the text that was read
  std::uint64_t descr_offset = 0;
  bool fortran_order = false;
  Extents shape;
  std::uint64_t shape_offset = 0;
  std::vector<std::string> notes;
};

/// Reads a header, which NumPy writes as a Python literal, by its own grammar; nothing is evaluated:
///
///   header = dictionary { space } [ newline ]
///   dictionary = "{" member { "," member } [ "," ] "}"     each of the three keys once, in any order
///   member = 'descr' ":" string | 'fortran_order' ":" ( True | False ) | 'shape' ":" tuple
///   tuple = "(" [ extent "," { extent "," } [ extent ] ] ")"
///   extent = digits [ "L" ]
///
/// `offset` is the position of the text in the file.
/// Throws: Error "byte OFFSET: WHAT".
NpyDictionary read_npy_dictionary(std::string_view text, std::uint64_t offset);

}  // namespace posenc
