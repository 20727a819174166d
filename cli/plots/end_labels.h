#pragma once

#include <string>
#include <vector>

#include "cli/plots/figure.h"

namespace posenc::cli {

/// A name beside the right end of its line.
struct EndLabel {
  std::string name = {};
  int style = 0;
  bool is_area = false;
  double height = 0;  // above the panel's lower edge
};

/// The names that a panel shows, each once.
std::vector<std::string> end_names(const Panel& panel);

bool has_one_name(const Panel& panel);

/// Where they stand in a panel of this height: as near to the line's end as can be, `apart` from each other. A name
/// alone stands in the middle, and those of a panel without axes at the top.
std::vector<EndLabel> end_labels(const Panel& panel, double height, double apart);

}  // namespace posenc::cli
