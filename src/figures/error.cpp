// The error of an angle against position: exact angles, and the usual ways to compute them.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "figures/kinds.h"
#include "figures/position_table.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/half.h"

namespace posenc::figures {
namespace {

// How many places along the axis, and positions tested per place.
struct Sampling {
  int places = 96, samples = 16;
};

template <class T>
std::vector<double> rounded_values(const Addition& form, const std::vector<std::int64_t>& positions) {
  std::vector<T> values(positions.size() * form.width);
  tabulate(view(values.data(), {static_cast<std::int64_t>(positions.size()), form.width}), {.ids = positions}, form);
  std::vector<double> result;
  for (const T value : values) result.push_back(to_double(value));
  return result;
}

// Positions rounded to bf16: tabulates the line f(p) = p in that type.
std::vector<std::int64_t> positions_in_bf16(const std::vector<std::int64_t>& positions) {
  const Addition line{1, Lines{{0.0}, {1.0}}};
  std::vector<std::int64_t> result;
  for (const double position : rounded_values<BFloat16>(line, positions)) {
    result.push_back(std::min(static_cast<std::int64_t>(position), kPositionLimit - 1));
  }
  return result;
}

// The columns of the sine and the cosine of a wave.
struct PairColumns {
  std::int64_t cosine = -1, sine = -1;
};
std::vector<PairColumns> pairs_of_table(const PositionTable& table) {
  const auto& waves = std::get<Waves>(table.form.source);
  std::vector<PairColumns> pairs(waves.waves.size());
  for (std::size_t column = 0; column < waves.columns.size(); ++column) {
    PairColumns& pair = pairs[waves.columns[column].wave];
    (waves.columns[column].quarter % 2 == 1 ? pair.cosine : pair.sine) = static_cast<std::int64_t>(column);
  }
  std::erase_if(pairs, [](const PairColumns& pair) { return pair.cosine < 0 || pair.sine < 0; });
  return pairs;
}

// Increases with the angle between two vectors, from 0 to 2 at π, and is much cheaper than an arc tangent.
double angle_rank(double across, double along) {
  const double size = std::fabs(across), share = size / (size + std::fabs(along));
  return along < 0 ? 2 - share : share;
}

// The largest angle, per place, between the true and the given direction of any pair.
std::vector<double> worst_angles(const PositionTable& table, const Sampling& sampling,
                                 const std::vector<double>& truth, const std::vector<double>& values) {
  const std::vector<PairColumns> pairs = pairs_of_table(table);
  const std::int64_t width = table.form.width;
  std::vector<double> worst(sampling.places, 0.0);
  for (std::int64_t place = 0; place < sampling.places; ++place) {
    double largest = -1, most_across = 0, most_along = 1;
    for (std::int64_t row = place * sampling.samples; row < (place + 1) * sampling.samples; ++row) {
      for (const PairColumns& pair : pairs) {
        const std::size_t cosine = row * width + pair.cosine;
        const std::size_t sine = row * width + pair.sine;
        const double across = truth[cosine] * values[sine] - truth[sine] * values[cosine];
        const double along = truth[cosine] * values[cosine] + truth[sine] * values[sine];
        const double rank = angle_rank(across, along);
        if (rank <= largest) continue;
        largest = rank;
        most_across = across;
        most_along = along;
      }
    }
    const double angle = std::fabs(std::atan2(most_across, most_along));
    worst[place] = angle == 0 ? std::nan("") : angle;  // a logarithmic axis cannot show 0
  }
  return worst;
}

}  // namespace

Figure error_figure(const Request& request) {
  const PlottedScheme& scheme = request.schemes.front();
  Range range = range_of(request, {1, 100'000'001}, kPositionLimit, "error");
  range.from = std::max<std::int64_t>(range.from, 1);
  if (range.to - 1 < range.from * 2) raise("error: zoom needs a range that at least doubles, e.g. 1:1000000");
  if (request.numerics != Numerics::kExact) raise("error: compares all numerics; remove --numerics");
  const auto table_with = [&](Numerics numerics) {
    Request one = request;
    one.numerics = numerics;
    return position_table(scheme, one, range.to);
  };
  const PositionTable exact = table_with(Numerics::kExact);
  if (!is_wave(exact) || pairs_of_table(exact).empty()) {
    raise(fmt::format("{} has no angles", name_of(scheme.scheme)));
  }

  const auto first = static_cast<double>(range.from), last = static_cast<double>(range.to - 1);
  const Sampling sampling = request.is_sketch ? Sampling{32, 4} : Sampling{};
  std::vector<double> places;
  std::vector<std::int64_t> positions;
  for (int place = 0; place < sampling.places; ++place) {
    const double from = first * std::pow(last / first, static_cast<double>(place) / (sampling.places - 1));
    const double to = std::min(first * std::pow(last / first, (place + 1.0) / (sampling.places - 1)), last);
    places.push_back(from);
    for (int sample = 0; sample < sampling.samples; ++sample) {
      // Multiples of the golden ratio are evenly spread and do not resonate with any wave.
      const double share = std::fmod(sample * 0.6180339887498949, 1.0);
      positions.push_back(
          std::clamp(static_cast<std::int64_t>(from + (to - from) * share), range.from, range.to - 1));
    }
  }

  const std::vector<double> truth = values_at(exact, positions);
  Panel panel;
  const auto add = [&](const std::string& name, int style, const std::vector<double>& values) {
    panel.series.push_back(
        {.name = name, .x = places, .y = worst_angles(exact, sampling, truth, values), .style = style});
  };
  add("bf16 positions", 3, rounded_values<float>(exact.form, positions_in_bf16(positions)));
  add("ggml-f32: float32 angle", 1, rounded_values<float>(table_with(Numerics::kGgmlF32).form, positions));
  add("hf-f32: float32 angle", 2, rounded_values<float>(table_with(Numerics::kHfF32).form, positions));
  add("exact, in bf16", 4, rounded_values<BFloat16>(exact.form, positions));
  add("exact, in float16", 5, rounded_values<Half>(exact.form, positions));
  add("exact, in float32", 0, rounded_values<float>(exact.form, positions));

  panel.x = {.label = "position", .least = first, .most = last, .scale = AxisScale::kLog};
  panel.y = {.label = "largest error of an angle, in radians", .least = 1e-9, .most = 20, .scale = AxisScale::kLog};
  panel.rules.push_back({.at = std::acos(-1.0), .text = "π: the angle carries no information"});
  Figure figure;
  figure.kind = "error";
  figure.title = "Error of the angle by position";
  figure.subtitle = fmt::format("{}; largest error over {} pairs, at {} positions per step", described(scheme.scheme),
                                pairs_of_table(exact).size(), sampling.samples);
  figure.rows = {{{std::move(panel)}}};
  return figure;
}

}  // namespace posenc::figures
