#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "cli/pages/report.h"

namespace posenc::cli {

/// One row at a large position, computed in three ways: exactly by the library, with the usual float32 angle, and as
/// an independent check with the C library's widest type.
ReportSection exactness_section();

/// The claimed properties of schemes, measured: the best-known schemes on a terminal, all of them on a page.
ReportSection properties_section();

/// How fast a table is written here, beside plain stores to the same memory. Takes a second at most.
ReportSection speed_section();

/// Figures of these kinds with their default schemes, for the page. Empty if gnuplot is not installed: the tour then
/// has tables only.
std::vector<ReportFigure> tour_figures(std::initializer_list<std::string_view> kinds);

}  // namespace posenc::cli
