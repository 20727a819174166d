#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/tensor.h"

namespace posenc::diagnosis {

/// "3", "3 and 7", "0 to 4 and 9"
std::string ranges_text(const std::vector<std::int64_t>& sorted);

/// The heads (or sequences of a batch) that differ, if others agree.
struct HeadParts {
  std::vector<std::int64_t> heads;   // along the axis before the sequence; or along the batch
  std::vector<std::int64_t> outers;  // all vectors' worth of these, counted over the axes before the sequence
  std::string name;                  // "heads 3 and 7"
  std::string text;                  // "heads 3 and 7 differ, the other 6 agree"
};
HeadParts head_parts(const std::vector<bool>& misses, const Extents& shape);

/// The tokens that differ, if others agree.
struct TokenParts {
  std::vector<std::int64_t> tokens;
  std::string name, text;
};
TokenParts token_parts(const std::vector<bool>& misses, const Extents& shape);

/// Numbers that came from a tensor of this type, as such a tensor again.
class TypedCopy {
 public:
  TypedCopy(const std::vector<double>& values, const Extents& shape, DataType type);
  ConstTensorView view() const;

 private:
  std::vector<std::byte> bytes_;
  Extents shape_;
  DataType type_;
};

}  // namespace posenc::diagnosis
