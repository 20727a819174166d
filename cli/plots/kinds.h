#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/flags/scheme_flags.h"
#include "cli/plots/figure.h"
#include "posenc/forms.h"
#include "posenc/npy.h"

namespace posenc::cli {

/// A scheme of a figure, with its trained table where it has one.
struct PlottedScheme {
  SchemeRequest request = {};
  NpyArray weights = {};
};

/// Whole numbers from `from` up to, not including, `to`.
struct WholeRange {
  std::int64_t from = 0, to = 0;
  std::int64_t count() const { return to - from; }
};

/// What a figure is asked to show. Schemes are never empty: a kind has its own where nobody names one.
struct PlotRequest {
  std::vector<PlottedScheme> schemes = {};
  std::optional<WholeRange> zoom = {};      // positions, or distances
  std::optional<std::int64_t> at = {};      // one position
  std::optional<std::int64_t> shift = {};   // and another, so much further
  std::vector<std::int64_t> features = {};  // which columns; empty: a choice
  Numerics numerics = Numerics::kExact;
  std::int64_t length = 0;                   // of the whole sequence, where a scheme asks; 0: what is drawn
  std::optional<std::int64_t> trained = {};  // length of a model that is to be stretched
  double factor = 8;                         // by this
  bool as_lines = false;                     // a bias as lines instead of maps

  // what the medium can show
  int points = 2400;                         // across a panel
  int cells_across = 512, cells_down = 512;  // of a heat map
};

/// A kind of figure. Throws: Failure or Error where the schemes are not of the kind's sort, or the range is too long.
struct PlotKind {
  std::string_view name;
  std::string_view summary;
  std::vector<Scheme> defaults;  // drawn where no scheme is named
  int most_schemes;
  std::function<Figure(const PlotRequest&)> make;
};
const std::vector<PlotKind>& plot_kinds();

Figure waves_figure(const PlotRequest& request);
Figure heatmap_figure(const PlotRequest& request);
Figure fingerprint_figure(const PlotRequest& request);
Figure phasors_figure(const PlotRequest& request);
Figure dots_figure(const PlotRequest& request);
Figure decay_figure(const PlotRequest& request);
Figure bias_figure(const PlotRequest& request);
Figure scaling_figure(const PlotRequest& request);
Figure error_figure(const PlotRequest& request);

/// The figure of a kind with its default schemes. Throws: Failure for a name that is no kind.
Figure standard_figure(std::string_view kind);
/// Those that tell the story, in its order: waves, heatmap, fingerprint, dots, decay, error.
std::vector<Figure> standard_figures();

}  // namespace posenc::cli
