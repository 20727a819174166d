#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/comparison.h"
#include "posenc/half.h"

namespace posenc::diagnosis {

/// Two tensors in float32 or float64 whose values are those of a 16-bit type, as a bf16 tensor has after `.float()`: in that
/// type, to compare them no more precisely than they are. Others stay as they are.
class Narrowed {
 public:
  explicit Narrowed(const Tensors& two);
  Narrowed(const Narrowed&) = delete;
  Narrowed& operator=(const Narrowed&) = delete;

  const Tensors& tensors() const noexcept { return two_; }
  /// The 16-bit type; nothing if the tensors stayed as they are.
  std::optional<DataType> type() const noexcept { return type_; }

 private:
  struct Copy {
    std::vector<Half> f16;
    std::vector<BFloat16> bf16;
    ConstTensorView of(ConstTensorView x, DataType type);
  };

  Tensors two_;
  std::optional<DataType> type_;
  Copy before_, after_;
};

}  // namespace posenc::diagnosis
