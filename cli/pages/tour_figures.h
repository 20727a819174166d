#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "cli/pages/report.h"

namespace posenc::cli {

/// Figures of these kinds with their default schemes, for the page. Empty if gnuplot is not installed: the tour then
/// has tables only.
std::vector<ReportFigure> tour_figures(std::initializer_list<std::string_view> kinds);

}  // namespace posenc::cli
