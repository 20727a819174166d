#include "cli/lab/lab_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace posenc::cli {
namespace {

using figures::AxisScale;
using figures::Drawing;
using figures::Figure;
using figures::Panel;
using figures::Series;

// Each scheme has the same colour in every figure.
int style_of(std::string_view scheme) {
  constexpr std::string_view kOrder[] = {"alibi",  "rope",    "sinusoidal", "none", "t5",
                                         "kerple", "learned", "fire",       "xpos"};
  for (int i = 0; i < static_cast<int>(std::size(kOrder)); ++i) {
    if (scheme.starts_with(kOrder[i])) return i;
  }
  return 0;
}

bool is_plain_text(const lab::Job& job) { return job.task == "text" && job.extensions.empty() && job.parent.empty(); }

// Press et al. 2022, Table 2: validation perplexity of models trained with 512 tokens.
struct Published {
  std::string_view scheme;
  std::vector<double> perplexity;
};
const std::vector<double> kPublishedLengths = {512, 532, 612, 712, 1012, 1512, 3512};
const std::vector<Published>& press() {
  static const std::vector<Published> all = {{"alibi", {19.73, 19.61, 19.38, 19.14, 18.73, 18.52, 18.40}},
                                             {"rope", {20.07, 19.98, 19.81, 19.79, 21.37, 25.99, 35.54}},
                                             {"sinusoidal", {20.05, 19.91, 20.59, 24.86, 43.54, 76.23, 178.97}},
                                             {"t5", {19.65, 19.53, 19.27, 19.10, 18.79, 18.91, 22.91}}};
  return all;
}

Panel relative_panel(std::string title) {
  Panel panel;
  panel.title = std::move(title);
  panel.x = {.label = "length, in trained lengths", .least = 1, .most = 8, .scale = AxisScale::kLog};
  panel.x.ticks = {{1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}};
  panel.y = {.label = "perplexity / perplexity at 1", .least = 0.85, .most = 10, .scale = AxisScale::kLog};
  panel.y.ticks = {{1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}};
  panel.rules.push_back({.vertical = false, .at = 1});
  return panel;
}

void add_length_figure(const std::vector<LabRow>& rows, std::int64_t trained, std::vector<LabFigure>& figures) {
  Panel ours = relative_panel(fmt::format("here: trained with {} bytes", trained));
  double most = 2;
  for (const LabRow& row : rows) {
    if (row.task != "text" || row.extension != "none" || row.sizes.empty() || row.sizes.front() != trained) continue;
    Series series{.name = row.scheme, .style = style_of(row.scheme), .drawing = Drawing::kLineAndDots};
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      series.x.push_back(static_cast<double>(row.sizes[i]) / static_cast<double>(trained));
      series.y.push_back(row.means[i] / row.means.front());
      most = std::max(most, series.y.back());
    }
    ours.series.push_back(std::move(series));
  }
  if (ours.series.empty()) return;
  Panel theirs = relative_panel("published: trained with 512 words (Press et al. 2022)");
  for (const Published& published : press()) {
    Series series{
        .name = std::string(published.scheme), .style = style_of(published.scheme), .drawing = Drawing::kLineAndDots};
    for (std::size_t i = 0; i < kPublishedLengths.size(); ++i) {
      series.x.push_back(kPublishedLengths[i] / 512);
      series.y.push_back(published.perplexity[i] / published.perplexity.front());
    }
    theirs.series.push_back(std::move(series));
  }
  ours.y.most = theirs.y.most = std::max(10.0, most * 1.1);
  Figure figure;
  figure.kind = "lab";
  figure.title = "Perplexity past the trained length";
  figure.subtitle = "validation text in windows that do not overlap; mean over seeds; relative to the trained length";
  figure.rows = {{{std::move(ours), std::move(theirs)}}};
  figure.width = 1000;
  figures.push_back(
      {"perplexity-by-length", std::move(figure),
       "Left, the models of this run; right, the published ones, a thousand times larger. A line that stays "
       "at 1 extrapolates. Windows that do not overlap favour longer windows: see the next figure."});
}

void add_position_figure(const std::vector<lab::Outcome>& outcomes, std::vector<LabFigure>& figures) {
  std::map<std::string, std::vector<const lab::Score*>> scores;
  std::int64_t trained = 0, longest = 0;
  for (const lab::Outcome& outcome : outcomes) {
    if (!is_plain_text(outcome.job)) continue;
    trained = outcome.job.size;
    longest = std::max(longest, outcome.job.sizes.empty() ? 0 : outcome.job.sizes.back());
    if (const lab::Score* const score = outcome.at(outcome.job.size * 8)) {
      scores[outcome.job.shape.scheme].push_back(score);
    }
  }
  if (scores.empty()) return;
  Panel panel;
  double least = 1e9, most = 0;
  for (const auto& [scheme, list] : scores) {
    Series series{.name = scheme, .style = style_of(scheme)};
    if (series.style >= 8) series.drawing = Drawing::kLineAndDots;  // the palette repeats
    const std::size_t parts = list.front()->by_position.size();
    for (std::size_t part = 0; part < parts; ++part) {
      double sum = 0;
      for (const lab::Score* const score : list) sum += score->by_position[part];
      series.x.push_back((static_cast<double>(part) + 0.5) * static_cast<double>(list.front()->length) /
                         static_cast<double>(parts));
      series.y.push_back(sum / static_cast<double>(list.size()));
      least = std::min(least, series.y.back());
      most = std::max(most, series.y.back());
    }
    panel.series.push_back(std::move(series));
  }
  panel.x = {.label = "position in the window", .least = 0, .most = static_cast<double>(longest)};
  panel.y = {.label = "nats per byte", .least = std::floor(least * 5) / 5, .most = std::ceil(most * 5) / 5};
  panel.rules.push_back({.vertical = true, .at = static_cast<double>(trained), .text = "trained length"});
  Figure figure;
  figure.kind = "lab";
  figure.title = fmt::format("Loss by position in windows of {} bytes", longest);
  figure.subtitle = "each point is the mean of some positions, over all windows and seeds";
  figure.rows = {{{std::move(panel)}}};
  figures.push_back(
      {"loss-by-position", std::move(figure),
       "Loss at a position with all earlier bytes as context. A flat line neither loses nor gains by more context; one that "
       "rises past the trained length meets positions that are new to it."});
}

void add_copy_figure(const std::vector<LabRow>& rows, std::vector<LabFigure>& figures) {
  Panel panel;
  double longest = 0, trained = 1e9;
  for (const LabRow& row : rows) {
    if (row.task != "copy") continue;
    Series series{.name = row.scheme, .style = style_of(row.scheme), .drawing = Drawing::kLineAndDots};
    if (row.scheme.find("random") != std::string::npos) series.style = 8;
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      series.x.push_back(static_cast<double>(row.sizes[i]));
      series.y.push_back(100 * row.means[i]);
      longest = std::max(longest, series.x.back());
      trained = std::min(trained, series.x.back());
    }
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) return;
  panel.x = {.label = "symbols to copy", .least = trained - 0.5, .most = longest};
  panel.y = {.label = "exact match, %", .least = 0, .most = 100};
  panel.rules.push_back({.vertical = true, .at = trained, .text = "longest in training"});
  Figure figure;
  figure.kind = "lab";
  figure.title = "Copying strings longer than in training";
  figure.subtitle = "share of strings of which every symbol is right; mean over seeds";
  figure.rows = {{{std::move(panel)}}};
  figures.push_back({"copy", std::move(figure),
                     "How far past the longest string of training each scheme copies without a mistake."});
}

void add_extension_figure(const std::vector<LabRow>& rows, const std::vector<lab::Outcome>& outcomes,
                          std::vector<LabFigure>& figures) {
  std::int64_t trained = 0;
  for (const lab::Outcome& outcome : outcomes) {
    if (!outcome.job.extensions.empty()) trained = outcome.job.size;
  }
  if (trained == 0) return;
  Panel panel;
  double most = 1, least = 1e9, longest = 1;
  double at_trained = 0;
  int style = 0;
  for (const LabRow& row : rows) {
    if (row.task != "text" || row.scheme != "rope" || row.sizes.empty()) continue;
    if (row.sizes.front() == trained) at_trained = row.means.front();
    const bool is_plain = row.extension == "none" && row.sizes.front() == trained && row.sizes.size() > 1;
    if (!is_plain && row.extension == "none") continue;
    Series series{.name = is_plain ? "unscaled" : row.extension, .style = style++, .drawing = Drawing::kLineAndDots};
    if (!is_plain) {
      series.x.push_back(1);
      series.y.push_back(at_trained);
    }
    for (std::size_t i = 0; i < row.sizes.size(); ++i) {
      series.x.push_back(static_cast<double>(row.sizes[i]) / static_cast<double>(trained));
      series.y.push_back(row.means[i]);
    }
    for (const double y : series.y) most = std::max(most, y), least = std::min(least, y);
    longest = std::max(longest, series.x.back());
    panel.series.push_back(std::move(series));
  }
  if (panel.series.empty()) return;
  panel.x = {.label = "length, in trained lengths", .least = 1, .most = longest, .scale = AxisScale::kLog};
  panel.x.ticks = {{1, "1"}, {2, "2"}, {4, "4"}, {8, "8"}};
  panel.y = {.label = "perplexity", .least = std::floor(least), .most = most * 1.1, .scale = AxisScale::kLog};
  for (const double tick : {5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 40.0}) {
    if (tick >= panel.y.least && tick <= panel.y.most) panel.y.ticks.push_back({tick, figures::grouped(tick)});
  }
  Figure figure;
  figure.kind = "lab";
  figure.title = "RoPE's extensions, without fine-tuning";
  figure.subtitle =
      fmt::format("trained with {} bytes; each extension with the factor of its length; mean over seeds", trained);
  figure.rows = {{{std::move(panel)}}};
  figures.push_back(
      {"rope-extensions", std::move(figure),
       "What each way of rescaling RoPE's frequencies does to a model that was not fine-tuned for it."});
}

}  // namespace

std::vector<LabRow> lab_rows(const std::vector<lab::Outcome>& outcomes) {
  struct Key {
    std::string task, scheme, extension;
    std::int64_t trained;
    bool is_tuned;
    auto operator<=>(const Key&) const = default;
  };
  std::vector<Key> order;
  std::map<Key, std::map<std::int64_t, std::vector<double>>> values;
  std::map<Key, std::int64_t> parameters;
  for (const lab::Outcome& outcome : outcomes) {
    const bool is_exact = lab::task_named(outcome.job.task).is_scored_exactly;
    for (const lab::Score& score : outcome.scores) {
      std::string scheme = lab::title_of(outcome.job.shape);
      if (!outcome.job.parent.empty()) scheme += ", fine-tuned";
      const Key key{outcome.job.task, scheme, score.extension, outcome.job.size, !outcome.job.parent.empty()};
      if (values.find(key) == values.end()) order.push_back(key);
      values[key][score.size].push_back(is_exact ? score.accuracy() : score.nll);
      parameters[key] = outcome.parameters;
    }
  }
  std::vector<LabRow> rows;
  for (const Key& key : order) {
    LabRow row;
    row.task = key.task;
    row.scheme = key.scheme;
    row.extension = key.extension;
    row.parameters = parameters[key];
    row.is_exact = lab::task_named(key.task).is_scored_exactly;
    for (const auto& [size, list] : values[key]) {
      const auto shown = [&](double value) { return row.is_exact ? value : std::exp(value); };
      double sum = 0;
      for (const double value : list) sum += value;
      row.sizes.push_back(size);
      row.seeds = static_cast<std::int64_t>(list.size());
      row.means.push_back(shown(sum / static_cast<double>(list.size())));
      row.least.push_back(shown(*std::min_element(list.begin(), list.end())));
      row.most.push_back(shown(*std::max_element(list.begin(), list.end())));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<LabFigure> lab_figures(const std::vector<lab::Outcome>& outcomes) {
  std::vector<LabFigure> figures;
  const std::vector<LabRow> rows = lab_rows(outcomes);
  for (const lab::Outcome& outcome : outcomes) {
    if (!is_plain_text(outcome.job)) continue;
    add_length_figure(rows, outcome.job.size, figures);
    break;
  }
  add_position_figure(outcomes, figures);
  add_copy_figure(rows, figures);
  add_extension_figure(rows, outcomes, figures);
  return figures;
}

}  // namespace posenc::cli
