#include "posenc/schemes/learned.h"

#include "schemes/check.h"

namespace posenc {

TrainedTable Learned::trained_table() const { return {{{"rows", rows}, {"width", width}}}; }

Addition prepare(const Learned& scheme, const PrepareOptions& options) {
  constexpr std::int64_t kRowLimit = kPositionLimit;
  schemes::check_between(Learned::name, "rows", scheme.rows, 1, kRowLimit);
  schemes::check_between(Learned::name, "width", scheme.width, 1, schemes::kWidthLimit);
  schemes::check_between(Learned::name, "offset", scheme.offset, 0, scheme.rows - 1);
  return {
      scheme.width,
      Rows{schemes::table_of_shape(Learned::name, options.weights, shape_of(scheme.trained_table())), scheme.offset}};
}

}  // namespace posenc
