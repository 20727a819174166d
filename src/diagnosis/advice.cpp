#include "diagnosis/advice.h"

#include <fmt/format.h>

#include <cmath>

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
  if (is.first_position != 0) {
    lines.push_back(fmt::format("Positions are off by {}. Count from 0", is.first_position));
  }
}

void on_rope(const Rope& want, const Rope& is, const Diagnosis& found, Lines& lines) {
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
  if (found.best->is_swapped) lines.emplace_back("Sine and cosine are exchanged. Exchange them back");
  if (is.dims != want.dims) say(lines, "rotary dimensions", want.dims, is.dims);
  if (found.verdict == Verdict::kUnknown) {
    lines.emplace_back("The frequencies are those of no known scheme. Compare them with `posenc inspect --json`");
    return;
  }
  if (differs(is.base, want.base, 1e-3)) say(lines, "base", want.base, is.base);
  if (is.scaling->index() != want.scaling->index()) {
    const auto name = [](const RopeScaling& scaling) {
      return std::visit([](const auto& one) { return one.name; }, scaling);
    };
    say(lines, "scaling", name(*want.scaling), name(*is.scaling));
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
}

void on_sinusoids(const Sinusoidal& want, const Sinusoidal& is, const Convention& best, Lines& lines) {
  if (is.layout != want.layout) say(lines, "columns", choice_name(want.layout), choice_name(is.layout));
  if (is.spacing != want.spacing) say(lines, "spacing", choice_name(want.spacing), choice_name(is.spacing));
  if (best.is_swapped) lines.emplace_back("Sine and cosine are exchanged. Exchange them back");
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

std::vector<std::string> advice_on(const Scheme& wanted, const Diagnosis& found) {
  Lines lines;
  if (found.verdict == Verdict::kUnchanged) lines.emplace_back("Nothing was applied: before and after are the same");
  if (!found.best) return lines;
  const Convention& best = *found.best;
  if (best.scheme.index() != wanted.index()) {
    if (found.verdict != Verdict::kUnknown) say(lines, "scheme", name_of(wanted), name_of(best.scheme));
    return lines;
  }
  on_positions(best, lines);
  if (const auto* const want = std::get_if<Rope>(&wanted)) on_rope(*want, std::get<Rope>(best.scheme), found, lines);
  if (const auto* const want = std::get_if<Sinusoidal>(&wanted)) {
    on_sinusoids(*want, std::get<Sinusoidal>(best.scheme), best, lines);
  }
  if (const auto* const want = std::get_if<Alibi>(&wanted)) {
    on_alibi(*want, std::get<Alibi>(best.scheme), best, lines);
  }
  return lines;
}

}  // namespace posenc::diagnosis
