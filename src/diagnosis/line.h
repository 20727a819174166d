#pragma once

#include <span>

namespace posenc::diagnosis {

struct WeightedPoint {
  double x = 0, y = 0, weight = 0;
};

/// y = offset + slope·x
struct Line {
  double offset = 0, slope = 0;
};

/// The weighted least-squares line through points; flat if all have the same x. Sums are of differences from the
/// mean, because differences of sums would be lost in their rounding.
inline Line line_through(std::span<const WeightedPoint> points) {
  double weight = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (const WeightedPoint& point : points) {
    weight += point.weight;
    mean_x += point.weight * point.x;
    mean_y += point.weight * point.y;
  }
  if (weight == 0) return {};
  mean_x /= weight;
  mean_y /= weight;
  for (const WeightedPoint& point : points) {
    xx += point.weight * (point.x - mean_x) * (point.x - mean_x);
    xy += point.weight * (point.x - mean_x) * (point.y - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 0;
  return {mean_y - slope * mean_x, slope};
}

}  // namespace posenc::diagnosis
