// Exercises on sines and cosines: the table, frequencies, angles, dot products, shifts.
#include <fmt/format.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "lessons/draft.h"
#include "lessons/quantities.h"

namespace posenc::lessons {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;

// A pair of the paper's table, and the wrong frequencies that people give it.
struct PairOf {
  std::int64_t width = 4, pair = 0;
  double base = 10000;

  double frequency() const { return frequency_at(width, pair, base); }
  // base^(−i/d)
  double with_i_for_2i() const { return std::sqrt(frequency()); }
  double with_other_base() const { return frequency_at(width, pair, other_base()); }
  double other_base() const { return base == 10000 ? 1000 : 10000; }
};

double wave(double angle, bool cosine) { return cosine ? cosine_of(angle) : sine_of(angle); }

std::string formula_of(bool cosine) { return cosine ? "cos" : "sin"; }

// What can go wrong on the way from a position to one value of the table; `finish` is what happens to it after.
void wave_mistakes(Draft& draft, const PairOf& pair, std::int64_t position, std::int64_t column,
                   const std::function<double(double)>& finish) {
  const bool cosine = column % 2 == 1;
  const auto p = static_cast<double>(position);
  const auto at = [&](double angle) { return finish(wave(angle, cosine)); };
  const double right = pair.frequency();
  draft.mistake(
      "i for 2i",
      fmt::format("The exponent is 2i/d: here {}/{}, not {}/{}.", 2 * pair.pair, pair.width, pair.pair, pair.width),
      at(p * pair.with_i_for_2i()));
  draft.mistake("column for pair",
                fmt::format("Column {} belongs to pair i = {}: the exponent counts pairs, two columns each.", column,
                            pair.pair),
                at(p * std::pow(pair.base, -2.0 * static_cast<double>(column) / static_cast<double>(pair.width))));
  draft.mistake("sin and cos swapped", "Even columns hold the sine of the angle, odd columns the cosine.",
                finish(wave(p * right, !cosine)));
  draft.mistake("degrees for radians", "The angle is in radians; a calculator set to degrees gives this.",
                at(p * right * kDegree));
  draft.mistake("× for ÷", "The position is divided by base^(2i/d), not multiplied with it.", at(p / right));
  draft.mistake("one position too far", fmt::format("That is the value of position {}.", position + 1),
                at((p + 1) * right));
  draft.mistake("one position short",
                fmt::format("That is the value of position {}: positions count from 0.", position - 1),
                at((p - 1) * right));
  draft.mistake("wrong base",
                fmt::format("That is base {}; here the base is {}.", plain(pair.other_base()), plain(pair.base)),
                at(p * pair.with_other_base()));
  draft.mistake(
      "halves for interleaved", "That is the table with all sines first, then all cosines; here they take turns.",
      finish(sinusoid_at({.width = pair.width, .base = pair.base, .layout = WaveLayout::kSinCos}, position, column)));
}

PairOf drawn_pair(Draw& draw, const std::vector<std::int64_t>& widths, std::int64_t first) {
  PairOf pair;
  pair.width = draw.one_of(widths);
  pair.pair = draw.between(first, pair.width / 2 - 1);
  return pair;
}

std::string angle_words(const PairOf& pair, std::int64_t position) {
  return fmt::format("{} / {}^({}/{})", position, plain(pair.base), 2 * pair.pair, pair.width);
}

// Σ_i f(δ·ω_i)
double sum_over_pairs(const PairOf& pair, const std::function<double(double)>& value_of) {
  double sum = 0;
  for (std::int64_t i = 0; i < pair.width / 2; ++i) sum += value_of(frequency_at(pair.width, i, pair.base));
  return sum;
}

}  // namespace

Draft draft_pe_value(Draw& draw) {
  PairOf pair = drawn_pair(draw, {4, 6, 8, 16}, 0);
  pair.base = draw.one_of<double>({10000, 10000, 100});
  const std::int64_t position = draw.between(1, 12);
  const bool cosine = draw.between(0, 1) == 1;
  const std::int64_t column = 2 * pair.pair + (cosine ? 1 : 0);
  const double angle = static_cast<double>(position) * pair.frequency();

  Draft draft;
  draft.give("width", pair.width, "base", pair.base, "position", position, "column", column);
  draft.prompt = fmt::format(
      "Sinusoidal table, d = {}, base {}, sines and cosines taking turns from column 0. "
      "What stands at position {}, column {}? ({})",
      pair.width, plain(pair.base), position, column, asked_for(draft.decimals));
  draft.hint = fmt::format("Column {} is the {} of pair i = {}; its angle is position / base^(2i/d).", column,
                           cosine ? "cosine" : "sine", pair.pair);
  draft.answer = sinusoid_at({.width = pair.width, .base = pair.base}, position, column);
  draft.working = fmt::format("angle = {} = {:.4f}, and {}({:.4f}) = {:.3f}", angle_words(pair, position), angle,
                              formula_of(cosine), angle, draft.answer);
  draft.command = fmt::format("posenc table sinusoidal --width {} --base {} --positions {}", pair.width,
                              plain(pair.base), position);
  wave_mistakes(draft, pair, position, column, [](double x) { return x; });
  return draft;
}

Draft draft_token_plus_position(Draw& draw) {
  const PairOf pair = drawn_pair(draw, {4, 6}, 0);
  const std::int64_t position = draw.between(1, 9);
  const bool cosine = draw.between(0, 1) == 1;
  const std::int64_t column = 2 * pair.pair + (cosine ? 1 : 0);
  const double token = draw.decimal(-1, 1, 1);
  const double added = sinusoid_at({.width = pair.width, .base = pair.base}, position, column);

  Draft draft;
  draft.give("width", pair.width, "token", token, "position", position, "column", column);
  draft.prompt = fmt::format(
      "A token's vector has {:.1f} in column {}. It stands at position {}; d = {}, base 10000, sines and cosines "
      "taking turns. What stands in that column of X + P? ({})",
      token, column, position, pair.width, asked_for(draft.decimals));
  draft.hint = "Compute the value of the position first, then add it to what the token has there.";
  draft.answer = token + added;
  draft.working = fmt::format("P = {}({}) = {:.3f};  {:.1f} + {} = {:.3f}", formula_of(cosine),
                              angle_words(pair, position), added, token, in_brackets(added, 3), draft.answer);
  draft.mistake("position left out", "That is the token alone: position has not been added.", token);
  draft.mistake("token left out", "That is the position alone: it is added to the token, not put in its place.",
                added);
  draft.mistake("subtracted", "Position is added to the token.", token - added);
  draft.mistake("multiplied", "Position is added to the token, not multiplied with it.", token * added);
  wave_mistakes(draft, pair, position, column, [&](double x) { return token + x; });
  return draft;
}

Draft draft_dot_product(Draw& draw) {
  const PairOf pair{.width = draw.one_of<std::int64_t>({4, 6, 8})};
  const std::int64_t distance = draw.between(1, 10);
  const std::int64_t first = draw.between(1, 20);
  const auto delta = static_cast<double>(distance);
  const auto both = static_cast<double>(2 * first + distance);

  Draft draft;
  draft.give("width", pair.width, "m", first, "n", first + distance);
  draft.prompt =
      fmt::format("Sinusoidal vectors of d = {} and base 10000. What is the dot product of positions {} and {}? ({})",
                  pair.width, first, first + distance, asked_for(draft.decimals));
  draft.hint = "Each pair gives cos(a)·cos(b) + sin(a)·sin(b) = cos(a − b): add one cosine for each pair.";
  draft.answer = dot_product_at({.width = pair.width, .base = pair.base}, distance);
  std::string sum;
  for (std::int64_t i = 0; i < pair.width / 2; ++i) {
    sum += fmt::format("{}cos({}·{})", i == 0 ? "" : " + ", distance, plain(frequency_at(pair.width, i, pair.base)));
  }
  draft.working = fmt::format("only the distance {} counts: {} = {:.3f}", distance, sum, draft.answer);
  const auto over = [&](const std::function<double(double)>& f) { return sum_over_pairs(pair, f); };
  draft.mistake("sum for difference", "The angles are subtracted: cos(a − b), not cos(a + b).",
                over([&](double w) { return cosine_of(both * w); }));
  draft.mistake("sines for cosines", "What is left of each pair is a cosine of the distance.",
                over([&](double w) { return sine_of(delta * w); }));
  draft.mistake("i for 2i", "The frequency of pair i is base^(−2i/d).",
                over([&](double w) { return cosine_of(delta * std::sqrt(w)); }));
  draft.mistake("degrees for radians", "The angles are in radians.",
                over([&](double w) { return cosine_of(delta * w * kDegree); }));
  draft.mistake("× for ÷", "Frequencies fall from pair to pair: base^(−2i/d), not base^(2i/d).",
                over([&](double w) { return cosine_of(delta / w); }));
  draft.mistake("first pair only", "Every pair adds its cosine, not the first alone.", cosine_of(delta));
  draft.mistake("each pair twice", "Each pair gives one cosine, though it has two features.", 2 * draft.answer);
  draft.mistake("mean for sum", "A dot product is the sum over the pairs, not their mean.",
                2 * draft.answer / static_cast<double>(pair.width));
  draft.mistake("both ends counted",
                fmt::format("From {} to {} it is {} steps, not {}.", first, first + distance, distance, distance + 1),
                dot_product_at({.width = pair.width, .base = pair.base}, distance + 1));
  return draft;
}

Draft draft_frequency(Draw& draw) {
  PairOf pair = drawn_pair(draw, {4, 8, 16, 32, 64}, 1);
  pair.base = draw.one_of<double>({100, 10000, 10000, 500000});
  Draft draft;
  draft.answer = pair.frequency();
  draft.decimals = decimals_for(draft.answer, 3);
  draft.give("dims", pair.width, "base", pair.base, "pair", pair.pair);
  draft.prompt =
      fmt::format("d = {}, base {}: how fast does pair i = {} turn (i counts from 0), in radians per position? ({})",
                  pair.width, plain(pair.base), pair.pair, asked_for(draft.decimals));
  draft.hint = "ω_i = base^(−2i/d).";
  draft.working = fmt::format("ω = {}^(−{}/{}) = {:.{}f}", plain(pair.base), 2 * pair.pair, pair.width, draft.answer,
                              draft.decimals);
  draft.command = fmt::format("posenc table rope --dims {} --base {} --positions 1 --digits {}", pair.width,
                              plain(pair.base), draft.decimals);
  const auto next_pair = PairOf{pair.width, pair.pair - 1, pair.base}.frequency();
  draft.mistake("i for 2i", "The exponent is −2i/d, not −i/d.", pair.with_i_for_2i());
  draft.mistake("× for ÷", "That is base^(2i/d), the number a position is divided by; the frequency is its inverse.",
                1 / draft.answer);
  draft.mistake("pair off by one", fmt::format("That is pair {}: pairs count from 0.", pair.pair - 1), next_pair);
  draft.mistake("wrong base", fmt::format("That is base {}.", plain(pair.other_base())), pair.with_other_base());
  draft.mistake("d/2 for d", "The exponent is divided by d, all features, not by the number of pairs.",
                draft.answer * draft.answer);
  draft.mistake("turns for radians", "That is in turns per position; one turn is 2π radians.", draft.answer / kTurn);
  draft.mistake("wavelength for frequency", "That is the wavelength 2π/ω.", kTurn / draft.answer);
  draft.mistake("degrees for radians", "That is in degrees per position.", draft.answer / kDegree);
  return draft;
}

Draft draft_wavelength(Draw& draw) {
  PairOf pair = drawn_pair(draw, {4, 8, 16, 64}, 0);
  pair.base = draw.one_of<double>({100, 10000, 10000, 500000});
  const double frequency = pair.frequency();
  Draft draft;
  draft.answer = kTurn / frequency;
  draft.decimals = decimals_for(draft.answer, 4);
  draft.give("dims", pair.width, "base", pair.base, "pair", pair.pair);
  draft.prompt = fmt::format("d = {}, base {}: after how many positions has pair i = {} gone round once? ({})",
                             pair.width, plain(pair.base), pair.pair, asked_for(draft.decimals));
  draft.hint = "A turn is 2π radians, and the pair does base^(−2i/d) of them in each position.";
  draft.working = fmt::format("2π · {}^({}/{}) = {:.{}f}", plain(pair.base), 2 * pair.pair, pair.width, draft.answer,
                              draft.decimals);
  draft.command = fmt::format("posenc table rope --dims {} --base {} --positions 0", pair.width, plain(pair.base));
  draft.mistake("2π left out", "That is the time for one radian; a turn has 2π of them.", 1 / frequency);
  draft.mistake("π for 2π", "A whole turn is 2π; after π the pair points the other way.",
                std::numbers::pi / frequency);
  draft.mistake("i for 2i", "The exponent is 2i/d, not i/d.", kTurn / pair.with_i_for_2i());
  draft.mistake("× for ÷", "2π is divided by the frequency, not multiplied with it.", kTurn * frequency);
  draft.mistake("degrees for radians", "The frequency is in radians per position, so a turn is 2π, not 360.",
                360 / frequency);
  draft.mistake("wrong base", fmt::format("That is base {}.", plain(pair.other_base())),
                kTurn / pair.with_other_base());
  if (pair.pair + 1 < pair.width / 2) {
    draft.mistake("pair off by one", fmt::format("That is pair {}: pairs count from 0.", pair.pair + 1),
                  kTurn / PairOf{pair.width, pair.pair + 1, pair.base}.frequency());
  }
  return draft;
}

Draft draft_angle(Draw& draw) {
  const PairOf pair = drawn_pair(draw, {4, 8, 16}, 1);
  const std::int64_t position = draw.between(2, 500);
  const auto p = static_cast<double>(position);
  const double frequency = pair.frequency();
  Draft draft;
  draft.answer = p * frequency;
  draft.decimals = decimals_for(draft.answer, 4);
  draft.give("dims", pair.width, "pair", pair.pair, "position", position);
  draft.prompt = fmt::format(
      "d = {}, base 10000: which angle has pair i = {} at position {}, in radians and with "
      "whole turns left in? ({})",
      pair.width, pair.pair, position, asked_for(draft.decimals));
  draft.hint = "Angle = position · ω_i, ω_i = base^(−2i/d).";
  draft.working = fmt::format("{} = {:.{}f}", angle_words(pair, position), draft.answer, draft.decimals);
  draft.mistake("i for 2i", "The exponent is 2i/d, not i/d.", p * pair.with_i_for_2i());
  draft.mistake("× for ÷", "The position is divided by base^(2i/d), not multiplied with it.", p / frequency);
  draft.mistake("degrees for radians", "That is the angle in degrees.", draft.answer / kDegree);
  draft.mistake("turns for radians", "That is the angle in turns.", draft.answer / kTurn);
  draft.mistake("one position too far", fmt::format("That is position {}.", position + 1), (p + 1) * frequency);
  draft.mistake("one position short", fmt::format("That is position {}.", position - 1), (p - 1) * frequency);
  draft.mistake("wrong base", fmt::format("That is base {}.", plain(pair.other_base())), p * pair.with_other_base());
  draft.mistake("whole turns taken away", "That is what is left after whole turns; here they stay in.",
                std::fmod(draft.answer, kTurn));
  return draft;
}

Draft draft_shift(Draw& draw) {
  const PairOf pair = drawn_pair(draw, {4, 8}, 0);
  const std::int64_t position = draw.between(1, 30), shift = draw.between(1, 9);
  const double frequency = pair.frequency();
  const double angle = static_cast<double>(position) * frequency, more = static_cast<double>(shift) * frequency;
  const double s = sine_of(angle), c = cosine_of(angle), turn_s = sine_of(more), turn_c = cosine_of(more);
  Draft draft;
  draft.decimals = 2;
  draft.answer = sinusoid_at({.width = pair.width, .base = pair.base}, position + shift, 2 * pair.pair);
  draft.give("sine", s, "cosine", c, "frequency", frequency, "shift", shift);
  draft.prompt = fmt::format(
      "At some position a pair of the sinusoidal table holds sine {:.4f} and cosine {:.4f}. Its frequency is {} "
      "radians per position. What is its sine {} position{} later? You need not know where it is. ({})",
      s, c, plain(frequency), shift, shift == 1 ? "" : "s", asked_for(draft.decimals));
  draft.hint = "sin(a + b) = sin(a)·cos(b) + cos(a)·sin(b), with b = shift · frequency.";
  draft.working = fmt::format("b = {:.4f}: {:.4f}·{} + {}·{} = {:.2f}", more, s, in_brackets(turn_c, 4),
                              in_brackets(c, 4), in_brackets(turn_s, 4), draft.answer);
  draft.mistake("turned back", "The second product is added; subtracting it goes back in time.",
                s * turn_c - c * turn_s);
  draft.mistake("cosine for sine", "That is the pair's cosine.", c * turn_c - s * turn_s);
  draft.mistake("sin and cos swapped", "sin goes with cos(b) and cos with sin(b), not the other way round.",
                s * turn_s + c * turn_c);
  draft.mistake("sines added", "The sine of a sum is not the sum of sines.", s + turn_s);
  draft.mistake("degrees for radians", "The angle b is in radians.",
                s * cosine_of(more * kDegree) + c * sine_of(more * kDegree));
  draft.mistake("not moved", "That is the sine before the shift.", s);
  draft.mistake("one position too far", fmt::format("That is a shift by {}.", shift + 1),
                sine_of(angle + more + frequency));
  return draft;
}

}  // namespace posenc::lessons
