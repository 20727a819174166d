#include "cli/pages/tour_sections.h"

#include <fmt/format.h>

#include "cli/plots/gnuplot.h"
#include "cli/plots/picture.h"

namespace posenc::cli {

namespace {

std::string_view caption_of(std::string_view kind) {
  struct Caption {
    std::string_view kind, text;
  };
  constexpr Caption kCaptions[] = {
      {"waves",
       "Each lane is one feature of the position vector. The fastest repeats every 6.28 positions, the slowest barely "
       "moves: together they identify a position"},
      {"heatmap",
       "The whole table: one row per position, one column per feature. Fast features on the left alternate from row to "
       "row, slow ones on the right change over hundreds of rows"},
      {"fingerprint",
       "One position as a pattern of fast and slow features, next to the digits of a binary counter, which also has fast "
       "and slow digits"},
      {"dots",
       "Dot products of all pairs of positions. Every line is flat: the product depends only on the distance. The order "
       "of the lines shows that it is not monotone"},
      {"decay",
       "How similarity and bias change with distance. Sinusoidal similarity falls and oscillates, biases fall steadily"},
      {"error",
       "The error of an angle by position. float32 angles lose one digit for every tenfold position; posenc's remain at "
       "the rounding of the result"},
  };
  for (const Caption& caption : kCaptions) {
    if (caption.kind == kind) return caption.text;
  }
  return kind;
}

}  // namespace

std::vector<ReportFigure> tour_figures(std::initializer_list<std::string_view> kinds) {
  std::vector<ReportFigure> figures;
  if (gnuplot_path().empty()) return figures;
  for (const std::string_view kind : kinds) {
    const Figure figure = figures::make(kind);
    figures.push_back({svg_of(figure, std::string(kind)), narrow_svg_of(figure, std::string(kind)),
                       fmt::format("{}.", caption_of(kind)), fmt::format("posenc plot {}", kind)});
  }
  return figures;
}

}  // namespace posenc::cli
