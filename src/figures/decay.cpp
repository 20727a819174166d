// How similar two positions are: dot products of all pairs, and how they fall with distance.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "figures/axes.h"
#include "figures/bias_values.h"
#include "figures/kinds.h"
#include "figures/position_table.h"
#include "figures/position_vectors.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/properties.h"

namespace posenc::figures {
namespace {

constexpr std::int64_t kMostDistances = std::int64_t{1} << 20;
constexpr std::size_t kMostLines = 7;

// Appended to the subtitle.
std::string type_note(const Request& request) {
  return request.type == DataType::kF64 ? "" : fmt::format("; rounded to {}", name_of(request.type));
}

}  // namespace

Figure dots_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  const Range range = range_of(request, {0, 15}, kMostDistances, "dots");
  if (range.count() < 3) raise("dots: zoom needs at least three positions");
  const Vectors vectors = vectors_of(scheme, request, range);

  Figure figure;
  figure.kind = "dots";
  figure.title = "Dot products at one distance: a line per distance, over all pairs";
  figure.subtitle = fmt::format(
      "{}; {}{}{}", described(scheme.scheme),
      is_rotation(scheme.scheme) ? "scores of rotated vectors of ones" : "dot products of two position vectors",
      numerics_note(request.numerics), type_note(request));
  Panel panel;
  double least = std::numeric_limits<double>::infinity(), most = -least, spread = 0;
  // Odd distances with at least two pairs, evenly spaced.
  const std::int64_t odd = (range.count() - 1) / 2;
  int style = 0;
  for (const std::int64_t index : evenly(odd, static_cast<std::int64_t>(kMostLines))) {
    const std::int64_t distance = 2 * index + 1;
    Series series{.name = fmt::format("distance {}", distance), .style = style};
    for (const std::int64_t i : evenly(range.count() - distance, request.points)) {
      series.x.push_back(static_cast<double>(range.from + i));
      series.y.push_back(dot(vectors.row(i), vectors.row(i + distance), vectors.width));
    }
    const auto [low, high] = std::minmax_element(series.y.begin(), series.y.end());
    least = std::min(least, *low);
    most = std::max(most, *high);
    spread = std::max(spread, *high - *low);
    if (range.count() <= 64) series.drawing = Drawing::kLineAndDots;
    panel.series.push_back(std::move(series));
    ++style;
  }
  panel.x = {.label = "first position of the pair",
             .least = static_cast<double>(range.from),
             .most = static_cast<double>(range.to - 2)};
  panel.y.label = "dot product";
  fit(panel.y, least, most, 0.08);
  const std::int64_t lines = std::ssize(panel.series);
  figure.rows = {{{std::move(panel)}}};
  figure.note = fmt::format(
      "Within a line, values differ by at most {:.2g}. {}{}", spread,
      lines < odd ? fmt::format("{} of the {} odd distances with two pairs or more are drawn.", lines, odd)
                  : std::string("Every odd distance with two pairs or more is drawn."),
      random_note(vectors));
  return figure;
}

Figure similarity_figure(const Request& request) {
  constexpr std::int64_t kUsual = 64;
  const PlottedScheme& scheme = request.schemes.front();
  if (is_bias(scheme.scheme)) raise(fmt::format("{} has no position vectors", name_of(scheme.scheme)));
  const auto* const learned = std::get_if<Learned>(&scheme.scheme);
  const std::int64_t reach =
      learned != nullptr ? learned->rows - learned->offset : reach_of(form_of(scheme, request, kUsual));
  const Range range = range_of(request, {0, std::min(kUsual, reach)}, kMostDistances, "similarity");
  const Vectors vectors = vectors_of(scheme, request, range);
  const auto cells =
      std::min<std::int64_t>(range.count(), std::min<std::int64_t>(request.cells_across, request.cells_down));
  const double step = static_cast<double>(range.count()) / static_cast<double>(cells);
  std::vector<std::int64_t> shown;
  for (std::int64_t i = 0; i < cells; ++i) shown.push_back(static_cast<std::int64_t>(static_cast<double>(i) * step));
  std::vector<double> lengths;
  for (const std::int64_t i : shown) lengths.push_back(std::sqrt(dot(vectors.row(i), vectors.row(i), vectors.width)));
  HeatMap map;
  for (std::size_t one = 0; one < shown.size(); ++one) {
    map.rows.push_back(static_cast<double>(range.from) + static_cast<double>(one) * step);
    for (std::size_t other = 0; other < shown.size(); ++other) {
      const double product = lengths[one] * lengths[other];  // the similarity of a zero vector is undefined
      const double value = dot(vectors.row(shown[one]), vectors.row(shown[other]), vectors.width);
      map.values.push_back(product == 0 ? std::nan("") : value / product);
    }
  }
  map.columns = map.rows;
  map.label = "cosine similarity";

  Figure figure;
  figure.kind = "similarity";
  figure.title = "Cosine similarity of every pair of positions";
  figure.subtitle =
      fmt::format("{}{}{}", described(scheme.scheme), numerics_note(request.numerics), type_note(request));
  Panel panel;
  panel.x = {.label = "position", .least = map.rows.front() - step / 2, .most = map.rows.back() + step / 2};
  panel.y = panel.x;
  panel.y.reversed = true;
  panel.heat_map = std::move(map);
  panel.equal_units = true;
  figure.rows = {{{std::move(panel)}}};
  figure.width = 760;
  figure.height = 700;
  figure.note = random_note(vectors);
  if (cells < range.count()) figure.note += fmt::format(" {} of {} positions, evenly spaced.", cells, range.count());
  if (!figure.note.empty()) figure.note.erase(0, 1);
  return figure;
}

namespace {

// For a drag: every stride-th distance alone, whose value stands for those up to the next.
std::vector<double> sketched_similarities(const PlottedScheme& scheme, const Request& request, const Range& range) {
  constexpr std::int64_t kLooks = 2048;
  const std::int64_t stride = std::max<std::int64_t>(1, range.count() / kLooks);
  std::vector<std::int64_t> ids{0};
  for (std::int64_t distance = range.from; distance < range.to; distance += stride) ids.push_back(distance);
  const Vectors vectors = vectors_of(scheme, request, {0, range.to}, ids);
  const auto length = [&](std::int64_t row) {
    return std::sqrt(dot(vectors.row(row), vectors.row(row), vectors.width));
  };
  std::vector<double> looked, result;
  for (std::int64_t row = 1; row < std::ssize(ids); ++row) {
    looked.push_back(dot(vectors.row(0), vectors.row(row), vectors.width) / (length(0) * length(row)));
  }
  for (std::int64_t i = 0; i < range.count(); ++i) result.push_back(looked[i / stride]);
  return result;
}

// Cosine similarity by distance, 1 at distance 0. If it also depends on the position, the mean over several
// positions. Without positions a token is alike wherever it is.
std::vector<double> similarities(const PlottedScheme& scheme, const Request& request, const Range& range) {
  constexpr std::int64_t kAveraged = 64;
  const Form form = form_of(scheme, request, range.to);
  if (std::holds_alternative<Nothing>(form)) return std::vector<double>(range.count(), 1.0);
  const bool is_even = std::holds_alternative<Rotation>(form) || waves_of(form) != nullptr;
  if (request.is_sketch && is_even) return sketched_similarities(scheme, request, range);
  const std::int64_t firsts = is_even ? 1 : std::clamp<std::int64_t>(reach_of(form) - range.to, 1, kAveraged);
  const Vectors vectors = vectors_of(scheme, request, {0, range.to + firsts - 1});
  std::vector<double> lengths;
  for (std::int64_t row = 0; row < range.to + firsts - 1; ++row) {
    lengths.push_back(std::sqrt(dot(vectors.row(row), vectors.row(row), vectors.width)));
  }
  std::vector<double> result;
  for (std::int64_t distance = range.from; distance < range.to; ++distance) {
    double sum = 0, count = 0;
    for (std::int64_t first = 0; first < firsts; ++first) {
      const double product = lengths[first] * lengths[first + distance];
      if (product == 0) continue;  // the similarity of a zero vector is undefined
      sum += dot(vectors.row(first), vectors.row(first + distance), vectors.width) / product;
      ++count;
    }
    result.push_back(count > 0 ? sum / count : std::nan(""));
  }
  return result;
}

// RoFormer (arXiv 2104.09864), section 3.4.3: the score of q and k is at most a factor, which depends on q and k
// only, times Σ_j |S_j|, where S_j is the sum of e^(i · distance · ω) over the first j pairs. Divided here by its
// value at distance 0.
std::vector<double> upper_bounds(const PlottedScheme& scheme, const Request& request, const Range& range) {
  const Rotation form = head_of(std::get<Rotation>(form_of(scheme, request, range.to)), 0);
  if (has_growth(form)) raise("rope: with xpos, lengths change with position, so there is no such bound");
  const std::int64_t pairs = pairs_of(form);
  if (range.count() > kMostCells / pairs) {
    raise(fmt::format("{}: {} distances are too many for the bound of {} pairs", name_of(scheme.scheme),
                      range.count(), pairs));
  }
  const std::size_t cells = range.count() * pairs;
  std::vector<double> cosines(cells), sines(cells), bounds;
  tabulate(view(cosines.data(), {range.count(), pairs}), view(sines.data(), {range.count(), pairs}),
           {.first = range.from}, form);
  const double at_zero = form.magnitude * static_cast<double>(pairs) * static_cast<double>(pairs + 1) / 2;
  for (std::size_t row = 0; row < cells; row += static_cast<std::size_t>(pairs)) {
    double across = 0, along = 0, sum = 0;
    for (std::size_t pair = row; pair < row + static_cast<std::size_t>(pairs); ++pair) {
      along += cosines[pair];
      across += sines[pair];
      sum += std::sqrt(along * along + across * across);  // the same bits on every platform, unlike hypot
    }
    bounds.push_back(sum / at_zero);
  }
  return bounds;
}

// The beginnings of at most `points` pieces of the range, and its end. The pieces have equal length, or equal ratio
// if is_log.
std::vector<std::int64_t> edges_of(const Range& range, int points, bool is_log) {
  std::vector<std::int64_t> edges;
  const auto from = static_cast<double>(range.from), ratio = static_cast<double>(range.to) / from;
  for (int n = 0; n < points; ++n) {
    const auto even = range.from + static_cast<std::int64_t>(static_cast<double>(range.count()) * n / points);
    const auto at =
        is_log ? static_cast<std::int64_t>(from * std::pow(ratio, static_cast<double>(n) / points)) : even;
    if (edges.empty() || at > edges.back()) edges.push_back(at);
  }
  edges.push_back(range.to);
  return edges;
}

// Ignores NaN, which is drawn as a gap.
struct Extremes {
  double least = std::numeric_limits<double>::infinity(), most = -least;
};
Extremes extremes_of(const std::vector<double>& values, std::int64_t begin, std::int64_t end) {
  Extremes found;
  for (std::int64_t i = begin; i < end; ++i) {
    const double value = values[i];
    if (value < found.least) found.least = value;
    if (value > found.most) found.most = value;
  }
  return found;
}

// Adds one value per distance. All are drawn as a line if the points can resolve them; else one per point if the
// curve is smooth, or the area between minimum and maximum if it is not.
void add_curve(Panel& panel, const std::string& name, int style, const Range& range, std::vector<double> values,
               const Request& request) {
  constexpr int kValuesPerPoint = 4;
  constexpr double kSmooth = 0.02;  // of the whole height, from one point to the next
  if (request.log_y) {
    // A logarithmic axis cannot show 0.
    for (double& value : values) value = value == 0 ? std::nan("") : std::fabs(value);
  }
  Series series{.name = name, .style = style};
  if (range.count() <= std::int64_t{kValuesPerPoint} * request.points) {
    series.y = values;
    series.x = counted(range.count(), static_cast<double>(range.from));
    panel.series.push_back(std::move(series));
    return;
  }
  Envelope area{.name = name, .style = style};
  double steepest = 0;
  const std::vector<std::int64_t> edges = edges_of(range, request.points, request.log_x);
  for (std::size_t n = 0; n + 1 < edges.size(); ++n) {
    const std::int64_t begin = edges[n] - range.from, end = edges[n + 1] - range.from;
    const Extremes piece = extremes_of(values, begin, end);
    area.x.push_back(static_cast<double>(edges[n]));
    area.low.push_back(piece.least);
    area.high.push_back(piece.most);
    series.y.push_back(values[begin]);
    steepest = std::max(steepest, piece.most - piece.least);
  }
  const Extremes whole = extremes_of(values, 0, range.count());
  if (steepest > kSmooth * (whole.most - whole.least)) {
    panel.envelopes.push_back(std::move(area));
    return;
  }
  series.x = area.x;
  series.x.push_back(static_cast<double>(range.to - 1));
  series.y.push_back(values.back());
  panel.series.push_back(std::move(series));
}

void fit_y(Panel& panel, bool is_log) {
  double least = std::numeric_limits<double>::infinity(), most = -least;
  const auto see = [&](const std::vector<double>& values) {
    for (const double value : values) {
      if (!std::isfinite(value)) continue;
      least = std::min(least, value);
      most = std::max(most, value);
    }
  };
  for (const Series& series : panel.series) see(series.y);
  for (const Envelope& envelope : panel.envelopes) {
    see(envelope.low);
    see(envelope.high);
  }
  if (least > most) least = most = is_log ? 1 : 0;
  if (!is_log) return fit(panel.y, least, most);
  // A sum of cosines can cross 0, where its logarithm is unbounded, so the axis covers six decades at most.
  constexpr double kDecades = 1e-6;
  panel.y.scale = AxisScale::kLog;
  panel.y.least = std::max(least, most * kDecades) * 0.8;
  panel.y.most = most * 1.25;
}

// e^-16 is a negligible weight, so lines may leave the panel below it.
constexpr double kDeepestBias = -16;

}  // namespace

Figure decay_figure(const Request& request) {
  Range range = range_of(request, {0, 257}, kMostDistances, "decay");
  if (request.log_x) range.from = std::max<std::int64_t>(range.from, 1);
  if (range.count() < 2) raise("decay: zoom needs at least two distances");
  Panel alike{.title = "Cosine similarity; 1 at distance 0"};
  Panel added{.title = "Bias added to the score"};
  Panel rows;  // of biases whose trained tables are not given
  alike.y.label = request.log_y ? "|cosine similarity|" : "cosine similarity";
  added.y.label = request.log_y ? "|bias|" : "bias";
  int style = 0;
  std::vector<std::string> names;
  bool is_bounded = false;
  for (const PlottedScheme& scheme : request.schemes) {
    const std::string name =
        request.schemes.size() > 1 ? label_of(scheme, request.schemes) : std::string(name_of(scheme.scheme));
    names.push_back(described(scheme.scheme));
    if (!is_bias(scheme.scheme)) {
      add_curve(alike, name, style++, range, similarities(scheme, request, range), request);
      if (request.has_bound && is_rotation(scheme.scheme)) {
        add_curve(alike, name + ", upper bound", style++, range, upper_bounds(scheme, request, range), request);
        is_bounded = true;
      }
      continue;
    }
    const BiasValues bias = bias_values(scheme, request, range.to);
    Panel& panel = bias.is_numbered() ? rows : added;
    if (bias.is_numbered()) {
      rows.title = fmt::format("The {} (its values are trained)", bias.row_name);
      rows.y.label = bias.row_name;
    }
    const std::vector<std::vector<double>> heads = bias_by_distance(bias, range);
    const auto count = static_cast<std::int64_t>(heads.size());
    for (const std::int64_t head : heads_shown(request, count, 3, name_of(scheme.scheme))) {
      const std::string which = heads.size() > 1 ? fmt::format("{}, head {}", name, head) : name;
      add_curve(panel, which, style++, range, heads[head], request);
    }
  }
  if (request.has_bound && !is_bounded)
    raise("decay: only rotations have this upper bound, and no scheme here rotates");
  Figure figure;
  figure.kind = "decay";
  figure.title = "Does similarity fall with distance?";
  figure.subtitle = fmt::format("{}{}", fmt::join(names, "; "), numerics_note(request.numerics));
  bool has_area = false;
  std::string notes;
  for (Panel* const panel : {&alike, &added, &rows}) {
    if (panel->series.empty() && panel->envelopes.empty()) continue;
    has_area = has_area || !panel->envelopes.empty();
    fit_y(*panel, request.log_y);
    if (!request.log_y && panel == &added && panel->y.least < 1.5 * kDeepestBias) {
      // Subtract the margin that fit_y added, a share of the full height.
      const double height = panel->y.most - panel->y.least;
      fit(panel->y, kDeepestBias, panel->y.most - height * 0.05 / 1.1, 0.03);
      notes = "A bias below −16 leaves a key less than 0.0000002 of its weight. ";
    }
    panel->x = {.least = static_cast<double>(range.from), .most = static_cast<double>(range.to - 1)};
    if (request.log_x) panel->x.scale = AxisScale::kLog;
    figure.rows.push_back({{std::move(*panel)}});
  }
  figure.rows.back().panels.front().x.label = "distance to an earlier position";
  if (is_bounded) notes += "The upper bound is RoFormer's (section 3.4.3), divided by its value at distance 0. ";
  if (has_area) notes += "Shaded, minimum to maximum: more distances than can be drawn.";
  figure.note = notes;
  figure.height = 200 + 200 * static_cast<int>(figure.rows.size());
  return figure;
}

}  // namespace posenc::figures
