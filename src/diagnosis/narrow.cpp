#include "diagnosis/narrow.h"

#include <utility>

#include "diagnosis/element.h"

namespace posenc::diagnosis {
namespace {

struct Rounded {
  double value = 0;
  bool is_odd = false;  // whether its last bit is set
};

Rounded rounded(double value, DataType type) {
  if (type == DataType::kBF16) {
    const BFloat16 narrow = to_bfloat16(value);
    return {to_double(narrow), (narrow.bits & 1U) != 0};
  }
  const Half narrow = to_half(value);
  return {to_double(narrow), (narrow.bits & 1U) != 0};
}

// Whether every value is one of the type, and so many need its last bit that they were rounded to it: small integers and
// slopes that are powers of two do not.
bool holds(const ConstTensorView& x, DataType type) {
  constexpr std::int64_t kFewest = 32;
  std::int64_t values = 0, odd = 0;
  for (std::int64_t i = 0; i < count_of(x.shape); ++i) {
    const double value = element(x, offset_of(index_of(i, x.shape), x.strides));
    const Rounded narrow = rounded(value, type);
    if (!(narrow.value == value)) return false;
    if (value == 0) continue;
    ++values;
    odd += narrow.is_odd ? 1 : 0;
  }
  return values >= kFewest && odd * 8 >= values;
}

bool is_wide(const ConstTensorView& x) { return x.type == DataType::kF32 || x.type == DataType::kF64; }

}  // namespace

ConstTensorView Narrowed::Copy::of(ConstTensorView x, DataType type) {
  for (std::int64_t i = 0; i < count_of(x.shape); ++i) {
    const double value = element(x, offset_of(index_of(i, x.shape), x.strides));
    type == DataType::kBF16 ? bf16.push_back(to_bfloat16(value)) : f16.push_back(to_half(value));
  }
  return type == DataType::kBF16 ? view(std::as_const(bf16).data(), x.shape)
                                 : view(std::as_const(f16).data(), x.shape);
}

Narrowed::Narrowed(const Tensors& two) : two_(two) {
  if (!is_wide(two.before) || !is_wide(two.after)) return;
  for (const DataType type : {DataType::kBF16, DataType::kF16}) {  // nearly every bf16 is an f16 as well
    if (!holds(two.after, type)) continue;
    type_ = type;
    two_.after = after_.of(two.after, type);
    if (holds(two.before, type)) two_.before = before_.of(two.before, type);
    return;
  }
}

}  // namespace posenc::diagnosis
