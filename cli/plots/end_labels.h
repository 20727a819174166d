#pragma once

#include <string>
#include <vector>

#include "cli/plots/figure.h"

namespace posenc::cli {

/// A name next to the right end of its line.
struct EndLabel {
  std::string name = {};
  int style = 0;
  bool is_area = false;
  double height = 0;  // above the panel's lower edge
};

/// The names shown in a panel, each once.
std::vector<std::string> end_names(const Panel& panel);

bool has_one_name(const Panel& panel);

/// The heights of the names in a panel of this height: as close to the line's end as possible, `apart` from each
/// other. A single name is in the middle; in a panel without axes, names are at the top.
std::vector<EndLabel> end_labels(const Panel& panel, double height, double apart);

}  // namespace posenc::cli
