#include "schemes/table_values.h"

#include <fmt/format.h>

#include "numerics/elements.h"
#include "posenc/error.h"

namespace posenc::schemes {
namespace {

template <class T> std::vector<double> widened(const ConstTensorView& table) {
  const std::int64_t count = count_of(table.shape);
  std::vector<double> values;
  values.reserve(count);
  for (std::int64_t index = 0; index < count; ++index) {
    std::int64_t offset = 0, rest = index;
    for (int axis = table.shape.rank - 1; axis >= 0; --axis) {
      offset += rest % table.shape[axis] * table.strides[axis];
      rest /= table.shape[axis];
    }
    values.push_back(numerics::widen(static_cast<const T*>(table.data)[offset]));
  }
  return values;
}

}  // namespace

std::vector<double> table_values(std::string_view scheme, const ConstTensorView& table) {
  if (table.device != Device::kHost) {
    raise(fmt::format("{}: the table must be on the host: the form is computed from it", scheme));
  }
  if (table.type > DataType::kBF16) {
    raise(fmt::format("{}: the table must be floating-point but is {}", scheme, name_of(table.type)));
  }
  return numerics::with_type(table.type, [&](auto kind) { return widened<decltype(kind)>(table); });
}

}  // namespace posenc::schemes
