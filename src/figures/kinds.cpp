#include "figures/kinds.h"

#include <fmt/format.h>

#include "posenc/error.h"

namespace posenc::figures {

namespace {

// Appended one by one: g++ 12 spends 80 seconds on one braced list, trying to evaluate it as a constant.
std::vector<Kind> all_kinds() {
  std::vector<Kind> all;
  all.push_back({"waves",
                 "features against position: each a wave, from fast to slow",
                 {Sinusoidal{.width = 16}},
                 1,
                 waves_figure});
  all.push_back({"heatmap",
                 "the table as a map: positions down, features across",
                 {Sinusoidal{.width = 128}},
                 1,
                 heatmap_figure});
  all.push_back({"fingerprint",
                 "the values of one position, next to the digits of a binary counter",
                 {Sinusoidal{.width = 32}},
                 1,
                 fingerprint_figure});
  all.push_back({"phasors",
                 "the pairs of a position as points on circles, after a shift, or of a query and a key",
                 {Sinusoidal{.width = 16}},
                 1,
                 phasors_figure});
  all.push_back({"rotation",
                 "the matrix that moves every position by --shift: one rotation per pair",
                 {Sinusoidal{.width = 16}},
                 1,
                 rotation_figure});
  all.push_back({"dots",
                 "dot products of all pairs of positions, one line per distance",
                 {Sinusoidal{.width = 8}},
                 1,
                 dots_figure});
  all.push_back({"similarity",
                 "cosine similarity of every pair of positions, as a map",
                 {Sinusoidal{.width = 128}},
                 1,
                 similarity_figure});
  all.push_back({"decay",
                 "similarity or bias by distance, for several schemes",
                 {Sinusoidal{.width = 128}, Rope{.base = 500000.0}, Alibi{}, Kerple{}},
                 6,
                 decay_figure});
  all.push_back(
      {"bias", "the bias added to the scores per head: maps, or lines by distance", {Alibi{}}, 1, bias_figure});
  all.push_back({"scaling", "how each RoPE scaling changes each frequency", {Rope{}}, 6, scaling_figure});
  all.push_back(
      {"error", "error of the angle by position: exact, float32 as in engines, bf16", {Rope{}}, 1, error_figure});
  all.push_back({"query-factor",
                 "what queries are multiplied by, against their position",
                 {QueryTemperature{}, QueryTemperature{.rule = TemperatureRule::kLog},
                  QueryTemperature{.rule = TemperatureRule::kTokens, .scale = 0.1}},
                 6,
                 temperature_figure});
  all.push_back({"grid",
                 "values over the rows and columns of an image: a resized table, or each pair",
                 {Resized{}},
                 1,
                 grid_figure});
  all.push_back({"ids",
                 "positions of a prompt with text, images and videos: time, height and width",
                 {Rope{.sections = {16, 24, 24}}},
                 1,
                 ids_figure});
  return all;
}

}  // namespace

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = all_kinds();
  return all;
}

namespace {

void check_request(std::string_view kind, const Request& request) {
  const auto check_position = [&](std::string_view what, std::int64_t value, std::int64_t least, std::int64_t most) {
    if (value < least || value > most) {
      raise(fmt::format("{}: {} must be from {} to {} but is {}", kind, what, least, most, value));
    }
  };
  if (request.zoom) {
    check_position("the beginning of zoom", request.zoom->from, 0, kPositionLimit - 1);
    check_position("the end of zoom", request.zoom->to, request.zoom->from + 1, kPositionLimit);
  }
  if (request.at) check_position("at", *request.at, 0, kPositionLimit - 1);
  if (request.key) check_position("key", *request.key, 0, kPositionLimit - 1);
  if (request.head) check_position("head", *request.head, 0, 1 << 16);
  if (request.shift) check_position("shift", *request.shift, -kPositionLimit, kPositionLimit);
  check_position("length", request.length, 0, kPositionLimit);
  check_position("points", request.points, 2, 1 << 20);
  check_position("cells_across", request.cells_across, 1, 1 << 14);
  check_position("cells_down", request.cells_down, 1, 1 << 14);
}

}  // namespace

Figure make(std::string_view name, const Request& request) {
  for (const Kind& kind : kinds()) {
    if (kind.name != name) continue;
    check_request(name, request);
    if (request.schemes.empty()) {
      Request with_defaults = request;
      for (const Scheme& scheme : kind.defaults) with_defaults.schemes.push_back({scheme, {}});
      return kind.make(with_defaults);
    }
    if (static_cast<int>(request.schemes.size()) > kind.most_schemes) {
      raise(fmt::format("{}: shows {}, not {}", kind.name,
                        kind.most_schemes == 1 ? "one scheme" : fmt::format("at most {} schemes", kind.most_schemes),
                        request.schemes.size()));
    }
    return kind.make(request);
  }
  std::vector<std::string_view> names;
  for (const Kind& kind : kinds()) names.push_back(kind.name);
  raise(fmt::format("figures: '{}' is not one of {}", name, fmt::join(names, ", ")));
}

}  // namespace posenc::figures
