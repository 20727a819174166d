#include "diagnosis/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "diagnosis/candidates.h"
#include "posenc/json.h"
#include "posenc/schemes/choice.h"

namespace posenc::diagnosis {
namespace {

using Lines = std::vector<std::string>;

void say(Lines& lines, std::string_view what, const auto& expected, const auto& got) {
  lines.push_back(fmt::format("{}: expected {}, got {}", what, expected, got));
}

bool differs(double one, double other, double room) { return std::fabs(one / other - 1) > room; }

// What can go wrong with any scheme.
void on_positions(const Convention& is, Lines& lines) {
  if (is.is_along_heads) {
    lines.emplace_back(
        "Positions count along the axis before the sequence (heads or batch). Exchange these two axes before "
        "position is applied, or check with --axes shd or bshd if the file has the sequence first");
  }
  if (is.is_reversed) lines.emplace_back("Positions are reversed. Count from the first token to the last");
  if (!is.positions.empty()) lines.emplace_back("Positions are not those given. Compare the list above with yours");
  if (is.position_factor == 2) {
    lines.emplace_back("The rotation was applied twice. Apply it once");
  } else if (is.position_factor != 1) {
    lines.push_back(fmt::format("Positions are multiplied by {:.6g}. Remove the factor", is.position_factor));
  }
  if (is.first_position != 0 && is_bias(is.scheme)) {
    lines.push_back(
        fmt::format("Queries are off by {} against their keys. Count both from the same token", is.first_position));
  } else if (is.first_position != 0) {
    lines.push_back(fmt::format("Positions are off by {}. Count from 0", is.first_position));
  }
}

std::string_view name_of_scaling(const RopeScaling& scaling) {
  return std::visit([](const auto& one) { return one.name; }, scaling);
}

// Fields of the same kind of scaling, of which some differ. Lists, which were measured, are not compared.
void on_scaling_fields(const Rope& want, const Rope& is, Lines& lines) {
  const Json wanted = *json_of(want).find("scaling"), got = *json_of(is).find("scaling");
  for (const auto& [key, value] : *wanted.as<Json::Object>()) {
    const Json* const other = got.find(key);
    const bool is_list = value.as<Json::Array>() != nullptr;
    if (other == nullptr || is_list || dump_json(*other) == dump_json(value)) continue;
    // what is not given follows from the other fields; magnitudes are compared as such
    if (value.as<std::nullptr_t>() != nullptr || other->as<std::nullptr_t>() != nullptr) continue;
    const auto text = [](const Json& one) {
      const double* const number = one.as<double>();
      return number != nullptr ? fmt::format("{}", *number) : dump_json(one);
    };
    say(lines, key, text(value), text(*other));
  }
}

// How the measured frequencies relate to the expected ones.
void on_frequencies(const Rope& want, const Rope& is, Lines& lines) {
  if (want.dims == is.dims && want.sections.empty()) {
    const std::vector<double> expected = frequencies_of(want), got = frequencies_of(is);
    double least = std::numeric_limits<double>::infinity(), most = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      // slow pairs are not measured
      if (i > 0 && got[i] == got[i - 1]) continue;
      least = std::min(least, std::fabs(expected[i] / got[i]));
      most = std::max(most, std::fabs(expected[i] / got[i]));
    }
    constexpr double kSame = 2e-3;  // as precisely as a few tokens show it
    if (most <= least * (1 + kSame) && differs(least, 1, kSame)) {
      lines.push_back(
          fmt::format("Every frequency is the expected one divided by {:.3g}: so are the positions, or a "
                      "linear scaling was applied besides",
                      (least + most) / 2));
      return;
    }
    lines.push_back(fmt::format("Frequencies are the expected ones divided by {:.4g} to {:.4g}", least, most));
  }
  lines.emplace_back("The frequencies are those of no known scheme. Compare them with `posenc inspect --json`");
}

// For how many tokens dynamic scaling has these frequencies, which are those of an unscaled base.
std::optional<std::int64_t> length_of(const Rope& want, const Rope& is) {
  const bool is_base = std::holds_alternative<DynamicScaling>(*want.scaling) &&
                       std::holds_alternative<NoScaling>(*is.scaling) && is.dims == want.dims && is.dims > 2;
  if (!is_base) return std::nullopt;
  const auto slowest = [](const Rope& rope, std::int64_t length) {
    return radians_of(prepare(rope, {.length = length}).frequencies.back());
  };
  const double measured = slowest(is, 1);
  std::int64_t below = 1, above = std::int64_t{1} << 32;
  while (above - below > 1) {  // longer sequences are slower
    const std::int64_t middle = below + (above - below) / 2;
    (slowest(want, middle) > measured * (1 + 1e-9) ? below : above) = middle;
  }
  if (differs(slowest(want, above), measured, 1e-4) || slowest(want, above) == slowest(want, 1)) return std::nullopt;
  return above;
}

void on_rope(const Rope& want, const Rope& is, const Diagnosis& found, std::int64_t features, Lines& lines) {
  if (is.layout != want.layout) {
    const bool can_permute = want.layout == PairLayout::kHalves || want.layout == PairLayout::kInterleaved;
    const std::string_view name = choice_name(want.layout), other = choice_name(is.layout);
    lines.push_back(fmt::format("pairs: expected {}, got {}. {}", name, other,
                                can_permute ? fmt::format("Permute with `posenc convert --to {}` if the weights are "
                                                          "{} too, or rotate {}",
                                                          name, other, name)
                                            : fmt::format("Rotate {} pairs", name)));
  }
  if (is.sign != want.sign) {
    const auto name = [](std::int64_t sign) { return sign > 0 ? "counter-clockwise" : "clockwise"; };
    lines.push_back(fmt::format("direction: expected {}, got {}. Negate the sine", name(want.sign), name(is.sign)));
  }
  if (found.best->is_swapped) lines.emplace_back("Sine and cosine are swapped. Swap them back");
  if (is.dims != want.dims) say(lines, "rotary dimensions", want.dims, is.dims);
  const std::int64_t first = want.first_dim < 0 ? features + want.first_dim : want.first_dim;
  if (is.first_dim != first) say(lines, "first rotary dimension", first, is.first_dim);
  if (found.verdict == Verdict::kUnknown) return on_frequencies(want, is, lines);
  if (const std::optional<std::int64_t> length = length_of(want, is)) {
    lines.push_back(
        fmt::format("base: expected {:.9g}, got {:.9g}. Dynamic scaling has that base for a sequence of {} tokens: "
                    "check with --length {} if it has as many",
                    want.base, is.base, *length, *length));
    return;
  }
  if (differs(is.base, want.base, 1e-3)) say(lines, "base", want.base, is.base);
  if (is.scaling->index() != want.scaling->index()) {
    say(lines, "scaling", name_of_scaling(*want.scaling), name_of_scaling(*is.scaling));
  } else {
    on_scaling_fields(want, is, lines);
  }
  if (is.sections != want.sections) {
    const auto list = [](const Rope& rope) {
      return rope.sections.empty() ? "none" : fmt::format("{}", fmt::join(rope.sections, " "));
    };
    say(lines, "sections", list(want), list(is));
  }
  if (!want.sections.empty() && !is.sections.empty() && is.section_order != want.section_order) {
    say(lines, "order of sections", choice_name(want.section_order), choice_name(is.section_order));
  }
  const double magnitude = prepare(want, {.length = 1}).magnitude;
  if (differs(found.best->magnitude, magnitude, 5e-3)) {
    say(lines, "magnitude", fmt::format("{:.6g}", magnitude), fmt::format("{:.6g}", found.best->magnitude));
  }
  if (found.best->numerics == AngleKind::kBf16Frequencies) {
    lines.emplace_back("Frequencies are in bf16. Keep them in float32");
  }
  if (found.best->numerics == AngleKind::kBf16Positions) {
    lines.emplace_back("Positions are in bf16. Keep them as integers");
  }
  if (found.best->numerics == AngleKind::kF16Frequencies) {
    lines.emplace_back("Frequencies are in f16. Keep them in float32");
  }
  if (found.best->numerics == AngleKind::kBf16Angles || found.best->numerics == AngleKind::kF16Angles) {
    lines.push_back(fmt::format("Angles, position times frequency, are in {}. Compute them in float32",
                                found.best->numerics == AngleKind::kF16Angles ? "f16" : "bf16"));
  }
}

void on_t5(const T5& want, const T5& is, Lines& lines) {
  if (is.heads != want.heads) say(lines, "heads", want.heads, is.heads);
  if (is.buckets != want.buckets) say(lines, "buckets", want.buckets, is.buckets);
  if (is.max_distance != want.max_distance) say(lines, "max_distance", want.max_distance, is.max_distance);
  if (is.bidirectional != want.bidirectional) say(lines, "bidirectional", want.bidirectional, is.bidirectional);
  if (is == want && lines.empty()) {
    lines.emplace_back(
        "The buckets are right, but the numbers added are not those of the table: another table, or its heads in "
        "another order");
  }
}

void on_sinusoids(const Sinusoidal& want, const Sinusoidal& is, const Convention& best, Lines& lines) {
  if (is.layout != want.layout) say(lines, "columns", choice_name(want.layout), choice_name(is.layout));
  if (is.spacing != want.spacing) say(lines, "spacing", choice_name(want.spacing), choice_name(is.spacing));
  if (best.is_swapped) lines.emplace_back("Sine and cosine are swapped. Swap them back");
  if (best.is_by_column) {
    lines.emplace_back(
        "Sine and cosine of a pair have different frequencies. Use 2⌊j/2⌋ in the exponent of column j");
  }
  if (differs(is.base, want.base, 1e-3)) say(lines, "base", want.base, is.base);
  if (differs(best.magnitude, want.scale, 5e-3)) {
    say(lines, "scale", fmt::format("{:.6g}", want.scale), fmt::format("{:.6g}", best.magnitude));
  }
  if (best.input_factor != 1) {
    lines.push_back(fmt::format(
        "The tokens are multiplied by {:.6g} before the addition. Save them after that factor", best.input_factor));
  }
}

void on_alibi(const Alibi& want, const Alibi& is, const Convention& best, Lines& lines) {
  if (best.magnitude < 0) lines.emplace_back("The sign is flipped. Subtract the slope times the distance");
  if (is.heads != want.heads) say(lines, "heads", want.heads, is.heads);
  if (differs(is.max_bias, want.max_bias, 1e-3)) say(lines, "max_bias", want.max_bias, is.max_bias);
  if (differs(std::fabs(best.magnitude), want.scale, 5e-3)) {
    say(lines, "scale", fmt::format("{:.6g}", want.scale), fmt::format("{:.6g}", std::fabs(best.magnitude)));
  }
}

}  // namespace

std::vector<std::string> advice_on(const Scheme& wanted, const Diagnosis& found, std::int64_t features) {
  Lines lines;
  if (found.verdict == Verdict::kUnchanged) lines.emplace_back("Nothing was applied: before and after are the same");
  if (!found.best) return lines;
  const Convention& best = *found.best;
  if (best.scheme.index() != wanted.index()) {
    if (found.verdict != Verdict::kUnknown) say(lines, "scheme", name_of(wanted), name_of(best.scheme));
    return lines;
  }
  on_positions(best, lines);
  if (const auto* const want = std::get_if<Rope>(&wanted)) {
    on_rope(*want, std::get<Rope>(best.scheme), found, features, lines);
  }
  if (const auto* const want = std::get_if<Sinusoidal>(&wanted)) {
    on_sinusoids(*want, std::get<Sinusoidal>(best.scheme), best, lines);
  }
  if (const auto* const want = std::get_if<Alibi>(&wanted)) {
    on_alibi(*want, std::get<Alibi>(best.scheme), best, lines);
  }
  if (const auto* const want = std::get_if<T5>(&wanted)) on_t5(*want, std::get<T5>(best.scheme), lines);
  return lines;
}

}  // namespace posenc::diagnosis
