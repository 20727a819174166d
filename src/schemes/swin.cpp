#include "posenc/schemes/swin.h"

#include <algorithm>

#include "schemes/check.h"
#include "schemes/distance_table.h"

namespace posenc {

TrainedTable Swin::trained_table() const {
  std::int64_t rows = 1;
  // for extents that prepare() rejects: at most what fits
  for (const std::int64_t extent : window) rows *= std::clamp<std::int64_t>(2 * extent - 1, 0, 1 << 13);
  return {{{"rows", rows}, {"heads", heads}}};
}

Bias prepare(const Swin& s, const PrepareOptions& options) {
  schemes::check_between(Swin::name, "heads", s.heads, 1, schemes::kHeadLimit);
  schemes::check_between(Swin::name, "number of extents of window", static_cast<std::int64_t>(s.window.size()), 1, 3);
  DistanceTable source;
  source.axes.resize(s.window.size());
  std::int64_t stride = 1;
  for (std::size_t axis = s.window.size(); axis-- > 0;) {
    schemes::check_between(Swin::name, "extents of window", s.window[axis], 1, 4096);
    source.axes[axis] = schemes::map_of_extent(s.window[axis], 0, stride);
    stride *= 2 * s.window[axis] - 1;
  }
  source.weights = schemes::table_of_shape(Swin::name, options.weights, shape_of(s.trained_table()));
  return {s.heads, std::move(source)};
}

}  // namespace posenc
