#include "cli/plots/kinds.h"

#include <fmt/format.h>

#include "cli/system/failure.h"

namespace posenc::cli {

const std::vector<PlotKind>& plot_kinds() {
  static const std::vector<PlotKind> kinds = {
      {"waves",
       "features against position: each a wave, from fast to slow",
       {Sinusoidal{.width = 16}},
       1,
       waves_figure},
      {"heatmap",
       "the table as colours: positions down, features across",
       {Sinusoidal{.width = 128}},
       1,
       heatmap_figure},
      {"fingerprint",
       "one position's numbers, and beside them the digits of a binary counter",
       {Sinusoidal{.width = 32}},
       1,
       fingerprint_figure},
      {"phasors",
       "the pairs of a position as clock hands, and where they are --shift later",
       {Sinusoidal{.width = 16}},
       1,
       phasors_figure},
      {"dots",
       "dot products of all pairs of positions, a line for each distance: flat, or not",
       {Sinusoidal{.width = 8}},
       1,
       dots_figure},
      {"decay",
       "how much a position has to do with others, against their distance; several schemes",
       {Sinusoidal{.width = 128}, Rope{.base = 500000.0}, Alibi{}, Kerple{}},
       6,
       decay_figure},
      {"bias",
       "what is added to the scores, for each head: maps, or with --lines against distance",
       {Alibi{}},
       1,
       bias_figure},
      {"scaling",
       "what each way to stretch rope does to each pair; trained length --trained, --factor times longer",
       {Rope{}},
       6,
       scaling_figure},
      {"error",
       "how far angles are off, against position: exact, float32 as engines do it, bf16",
       {Rope{}},
       1,
       error_figure},
  };
  return kinds;
}

Figure standard_figure(std::string_view name) {
  for (const PlotKind& kind : plot_kinds()) {
    if (kind.name != name) continue;
    PlotRequest request;
    for (const Scheme& scheme : kind.defaults) request.schemes.emplace_back().request.scheme = scheme;
    return kind.make(request);
  }
  refuse(fmt::format("plot: '{}' is no kind of figure", name));
}

std::vector<Figure> standard_figures() {
  std::vector<Figure> figures;
  for (const std::string_view name : {"waves", "heatmap", "fingerprint", "dots", "decay", "error"}) {
    figures.push_back(standard_figure(name));
  }
  return figures;
}

}  // namespace posenc::cli
