#include "forms/checks.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc {

std::int64_t check_tensor(std::string_view verb, std::string_view what, const ConstTensorView& view, int least_rank,
                          int most_rank, std::string_view axes) {
  if (view.shape.rank < least_rank || view.shape.rank > most_rank) {
    raise(fmt::format("{}: {} must have {}, but has {}", verb, what, axes, view.shape.rank));
  }
  if (view.strides.rank != view.shape.rank) {
    raise(fmt::format("{}: {} has {} axes but {} strides", verb, what, view.shape.rank, view.strides.rank));
  }
  const std::int64_t count = count_of(view.shape);
  if (count < 0) raise(fmt::format("{}: {} has an impossible shape {}", verb, what, to_string(view.shape)));
  if (count > 0 && view.data == nullptr) raise(fmt::format("{}: {} has no data", verb, what));
  if (view.type == DataType::kI64 || view.type == DataType::kBool) {
    raise(fmt::format("{}: {} must be f32, f64, f16 or bf16 but is {}", verb, what, name_of(view.type)));
  }
  return count;
}

void replace_table(ConstTensorView& table, const ConstTensorView& given, std::string_view what) {
  if (table.data == nullptr) raise(fmt::format("bind: the form reads no {}", what));
  if (given.data == nullptr || given.shape != table.shape || given.strides.rank != given.shape.rank) {
    raise(
        fmt::format("bind: {} of shape {} cannot replace {}", what, to_string(given.shape), to_string(table.shape)));
  }
  table = given;
}

}  // namespace posenc
