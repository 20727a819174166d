#include "cli/pages/tour_figures.h"

#include <fmt/format.h>

#include "cli/plots/gnuplot.h"
#include "cli/plots/picture.h"
#include "cli/system/failure.h"

namespace posenc::cli {

std::vector<ReportFigure> tour_figures(std::initializer_list<std::string_view> kinds) {
  std::vector<ReportFigure> figures;
  if (gnuplot_path().empty()) return figures;
  for (const std::string_view kind : kinds) {
    const Figure figure = figures::make(kind);
    figures.push_back({svg_of(figure, std::string(kind)), fmt::format("{}: posenc plot {}", figure.title, kind)});
  }
  return figures;
}

}  // namespace posenc::cli
