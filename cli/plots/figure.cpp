#include "cli/plots/figure.h"

namespace posenc::cli {

Panel with_equal_units(Panel panel, double width, double height) {
  const auto widen = [](Axis& axis, double range) {
    const double middle = (axis.least + axis.most) / 2;
    axis.least = middle - range / 2;
    axis.most = middle + range / 2;
  };
  const double across = (panel.x.most - panel.x.least) / width;
  const double upward = (panel.y.most - panel.y.least) / height;
  if (across < upward) widen(panel.x, upward * width);
  if (upward < across) widen(panel.y, across * height);
  return panel;
}

}  // namespace posenc::cli
