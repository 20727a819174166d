// Exercises on rotary position and the ways it is stretched.
#include <fmt/format.h>

#include <cmath>
#include <numbers>

#include "lessons/draft.h"
#include "lessons/quantities.h"

namespace posenc::lessons {
namespace {

Pair turned_by(double angle, Pair x) {
  const double c = cosine_of(angle), s = sine_of(angle);
  return {x.a * c - x.b * s, x.b * c + x.a * s};
}

double dot_product(Pair one, Pair other) { return one.a * other.a + one.b * other.b; }

std::string shown(Pair x) { return fmt::format("({:.1f}, {:.1f})", x.a, x.b); }

Pair drawn_vector(Draw& draw) { return {draw.decimal(-2, 2, 1), draw.decimal(-2, 2, 1)}; }

}  // namespace

Draft draft_rope_turn(Draw& draw) {
  const Rope rope{.dims = draw.one_of<std::int64_t>({2, 4, 8})};
  const std::int64_t pair = draw.between(0, rope.dims / 2 - 1), position = draw.between(1, 12);
  const Pair x = drawn_vector(draw);
  const bool second = draw.between(0, 1) == 1;
  const double frequency = frequency_at(rope.dims, pair, rope.base);
  const double angle = static_cast<double>(position) * frequency;
  const auto side = [second](Pair value) { return second ? value.b : value.a; };

  Draft draft;
  draft.give("dims", rope.dims, "pair", pair, "position", position, "a", x.a, "b", x.b, "second", second ? 1 : 0);
  draft.prompt = fmt::format(
      "RoPE with {} dims and base 10000 turns pair i = {} of a query at position {}. The pair holds {}. What is its "
      "{} number afterwards? ({})",
      rope.dims, pair, position, shown(x), second ? "second" : "first", asked_for(draft.decimals));
  draft.hint = "(a, b) becomes (a·cos φ − b·sin φ, b·cos φ + a·sin φ), φ = position · base^(−2i/d).";
  draft.answer = side(turned(rope, pair, position, x));
  const double c = cosine_of(angle), s = sine_of(angle);
  draft.working = second ? fmt::format("φ = {:.4f}: {}·{} + {}·{} = {:.3f}", angle, in_brackets(x.b, 1),
                                       in_brackets(c, 4), in_brackets(x.a, 1), in_brackets(s, 4), draft.answer)
                         : fmt::format("φ = {:.4f}: {}·{} − {}·{} = {:.3f}", angle, in_brackets(x.a, 1),
                                       in_brackets(c, 4), in_brackets(x.b, 1), in_brackets(s, 4), draft.answer);
  draft.mistake("turned the other way", "That is clockwise; RoPE turns counter-clockwise.",
                side(turned_by(-angle, x)));
  draft.mistake("the pair's other number", "That is the other number of the pair.",
                second ? turned_by(angle, x).a : turned_by(angle, x).b);
  draft.mistake("degrees for radians", "The angle is in radians.", side(turned_by(angle * kDegree, x)));
  draft.mistake("i for 2i", "The exponent is −2i/d, not −i/d.",
                side(turned_by(static_cast<double>(position) * std::sqrt(frequency), x)));
  draft.mistake("one position too far", fmt::format("That is position {}.", position + 1),
                side(turned_by(angle + frequency, x)));
  draft.mistake("one position short", fmt::format("That is position {}.", position - 1),
                side(turned_by(angle - frequency, x)));
  draft.mistake("sin and cos swapped", "The number itself meets the cosine, its partner the sine.",
                second ? x.b * s + x.a * c : x.a * s - x.b * c);
  draft.mistake("partner left out", "A turn mixes the two numbers of a pair: the partner's sine is missing.",
                side(x) * c);
  draft.mistake("added for turned", "RoPE turns the pair; it does not add sines and cosines to it.",
                second ? x.b + c : x.a + s);
  draft.mistake("not turned", "That is the pair before its turn.", side(x));
  return draft;
}

Draft draft_rope_score(Draw& draw) {
  const Rope rope{.dims = 2};
  const Pair q = drawn_vector(draw), k = drawn_vector(draw);
  const std::int64_t key = draw.between(0, 20), distance = draw.between(1, 6), query = key + distance;
  const auto delta = static_cast<double>(distance);

  Draft draft;
  draft.give("q_a", q.a, "q_b", q.b, "k_a", k.a, "k_b", k.b, "query", query, "key", key);
  draft.prompt = fmt::format(
      "One RoPE pair with frequency 1. The query {} stands at position {}, the key {} at position {}. What is their "
      "dot product after both are turned, without scaling? ({})",
      shown(q), query, shown(k), key, asked_for(draft.decimals));
  draft.hint = "Only the distance counts: turn the query by (query − key) and leave the key alone.";
  draft.answer = dot_product(turned(rope, 0, query, q), turned(rope, 0, key, k));
  const Pair moved = turned_by(delta, q);
  draft.working = fmt::format("the query turned by {} is ({:.3f}, {:.3f}); times the key: {:.3f}", distance, moved.a,
                              moved.b, draft.answer);
  draft.mistake("not turned", "That is q·k without position.", dot_product(q, k));
  draft.mistake("sum for difference", "The key's turn is taken away from the query's: m − n, not m + n.",
                dot_product(turned_by(static_cast<double>(query + key), q), k));
  draft.mistake("distance the other way", "Query minus key; the other sign mirrors the turn.",
                dot_product(turned_by(-delta, q), k));
  draft.mistake("key not turned", "Both are turned, each by its own position.",
                dot_product(turned_by(static_cast<double>(query), q), k));
  draft.mistake("query not turned", "Both are turned, each by its own position.",
                dot_product(q, turned_by(static_cast<double>(key), k)));
  draft.mistake("both ends counted", fmt::format("From {} to {} it is {} steps.", key, query, distance),
                dot_product(turned_by(delta + 1, q), k));
  draft.mistake("degrees for radians", "The angle is in radians.", dot_product(turned_by(delta * kDegree, q), k));
  draft.mistake("scaled", "That is divided by √2 already; the question is for the plain dot_product product.",
                draft.answer / std::numbers::sqrt2);
  return draft;
}

Draft draft_linear_angle(Draw& draw) {
  Rope rope{.dims = draw.one_of<std::int64_t>({4, 8, 16})};
  const std::int64_t pair = draw.between(0, rope.dims / 2 - 1), position = draw.between(100, 9000);
  const double factor = draw.one_of<double>({2, 4, 8, 16});
  const auto p = static_cast<double>(position);
  const double unscaled = p * frequency_at(rope.dims, pair, rope.base);
  rope.scaling = LinearScaling{.factor = factor};

  Draft draft;
  draft.answer = p * frequency_at(prepare(rope), pair);
  draft.decimals = decimals_for(draft.answer, 4);
  draft.give("dims", rope.dims, "pair", pair, "position", position, "factor", factor);
  draft.prompt = fmt::format(
      "RoPE with {} dims and base 10000 is stretched by linear scaling with factor {}. Which angle has pair i = {} "
      "at position {}, in radians, whole turns left in? ({})",
      rope.dims, plain(factor), pair, position, asked_for(draft.decimals));
  draft.hint = "Linear scaling squeezes positions: every angle is divided by the factor.";
  draft.working = fmt::format("{}/{} · 10000^(−{}/{}) = {:.{}f}", position, plain(factor), 2 * pair, rope.dims,
                              draft.answer, draft.decimals);
  draft.mistake("not scaled", "That is the angle without scaling.", unscaled);
  draft.mistake("× for ÷", "The angle is divided by the factor, so that far positions look like near ones.",
                unscaled * factor);
  draft.mistake("factor on the base", "That multiplies the base by the factor, which slows each pair differently.",
                p * frequency_at(rope.dims, pair, rope.base * factor));
  draft.mistake("i for 2i", "The exponent is −2i/d, not −i/d.",
                p / factor * std::sqrt(frequency_at(rope.dims, pair, rope.base)));
  draft.mistake("divided twice", "The factor is taken once.", draft.answer / factor);
  draft.mistake("degrees for radians", "That is in degrees.", draft.answer / kDegree);
  return draft;
}

Draft draft_ntk_slowdown(Draw& draw) {
  Rope rope{.dims = draw.one_of<std::int64_t>({8, 16, 32, 64})};
  const std::int64_t pair = draw.between(1, rope.dims / 2 - 1);
  const double factor = draw.one_of<double>({2, 4, 8});
  const double plain_frequency = frequency_at(rope.dims, pair, rope.base);
  rope.scaling = NtkScaling{.factor = factor};
  const auto i = static_cast<double>(pair), d = static_cast<double>(rope.dims);

  Draft draft;
  draft.answer = plain_frequency / frequency_at(prepare(rope), pair);
  draft.give("dims", rope.dims, "pair", pair, "factor", factor);
  draft.prompt = fmt::format(
      "NTK-aware scaling with factor {} on RoPE with {} dims and base 10000. How many times slower does pair i = {} "
      "turn than before? ({})",
      plain(factor), rope.dims, pair, asked_for(draft.decimals));
  draft.hint = "The base becomes base · factor^(d/(d−2)); put it into base^(−2i/d) and compare.";
  draft.working = fmt::format("{}^({}/{} · {}/{}) = {}^({}/{}) = {:.3f}", plain(factor), rope.dims, rope.dims - 2,
                              2 * pair, rope.dims, plain(factor), 2 * pair, rope.dims - 2, draft.answer);
  draft.mistake("linear scaling", "That slows every pair alike; NTK leaves the fastest and slows the slowest fully.",
                factor);
  draft.mistake("exponent left out", "The factor is raised to d/(d−2) before it multiplies the base.",
                std::pow(factor, 2 * i / d));
  draft.mistake("i for 2i", "The exponent is 2i, not i.", std::pow(factor, i / (d - 2)));
  draft.mistake("faster for slower", "That is how much faster it was before.", 1 / draft.answer);
  draft.mistake("not scaled", "Only pair 0 keeps its speed.", 1.0);
  draft.mistake("pair off by one", fmt::format("That is pair {}: pairs count from 0.", pair - 1),
                std::pow(factor, 2 * (i - 1) / (d - 2)));
  return draft;
}

Draft draft_yarn_magnitude(Draw& draw) {
  const double factor = draw.one_of<double>({2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64});
  Draft draft;
  draft.decimals = 4;
  draft.answer = prepare(Rope{.scaling = YarnScaling{.factor = factor}}).magnitude;
  draft.give("factor", factor);
  draft.prompt = fmt::format(
      "YaRN with factor {} and no attention factor in the config: by how much are cosines and sines multiplied? ({})",
      plain(factor), asked_for(draft.decimals));
  draft.hint = "One tenth of a logarithm of the factor, plus 1. Which logarithm?";
  draft.working = fmt::format("0.1 · ln {} + 1 = {:.4f}", plain(factor), draft.answer);
  draft.mistake("log base 10", "The logarithm is the natural one.", 0.1 * std::log10(factor) + 1);
  draft.mistake("log base 2", "The logarithm is the natural one.", 0.1 * std::log2(factor) + 1);
  draft.mistake("1 left out", "The 1 is missing: without scaling the magnitude is 1.", draft.answer - 1);
  draft.mistake("square of it", "That is what scores are multiplied by; each of q and k has the root of it.",
                draft.answer * draft.answer);
  draft.mistake("logarithm left out", "It grows with the logarithm of the factor.", 0.1 * factor + 1);
  draft.mistake("LongRoPE's formula", "√(1 + ln s / ln L) belongs to LongRoPE (here with L = 4096).",
                std::sqrt(1 + std::log(factor) / std::log(4096.0)));
  return draft;
}

Draft draft_llama3_slowdown(Draw& draw) {
  Rope rope{.dims = 128, .base = 500000.0};
  const std::int64_t pair = draw.between(29, 34);  // the pairs between the two bounds
  const Llama3Scaling scaling{.factor = draw.one_of<double>({8, 32}),
                              .original_length = draw.one_of<std::int64_t>({8192, 8192, 4096})};
  const double frequency = frequency_at(rope.dims, pair, rope.base);
  rope.scaling = scaling;
  const double wavelength = 2 * std::numbers::pi / frequency;
  const auto length = static_cast<double>(scaling.original_length);
  const auto share = [&](double wave) {
    return (length / wave - scaling.low_freq_factor) / (scaling.high_freq_factor - scaling.low_freq_factor);
  };
  const double kept = share(wavelength);

  Draft draft;
  draft.answer = frequency / frequency_at(prepare(rope), pair);
  draft.give("pair", pair, "factor", scaling.factor, "length", scaling.original_length);
  draft.prompt = fmt::format(
      "Llama 3's scaling: factor {}, low_freq_factor 1, high_freq_factor 4, trained length {}. Pair i = {} of {} "
      "dims and base 500000 has a wavelength of {:.1f} positions. How many times slower does it turn than before? "
      "({})",
      plain(scaling.factor), scaling.original_length, pair, rope.dims, wavelength, asked_for(draft.decimals));
  draft.hint =
      "Kept whole where the wavelength is below length/4, divided where it is above length/1; between, "
      "t = (length/wavelength − 1)/(4 − 1) is the share of the old frequency, 1 − t that of the divided one.";
  draft.working = kept <= 0   ? "its wavelength is above the trained length: divided by the whole factor"
                  : kept >= 1 ? "its wavelength is below a quarter of the trained length: kept"
                              : fmt::format("t = {:.4f}, and 1 / (t + (1 − t)/{}) = {:.3f}", kept,
                                            plain(scaling.factor), draft.answer);
  const auto blended = [&](double t) { return 1 / (t + (1 - t) / scaling.factor); };
  draft.mistake("whole factor", "That is what pairs with longer waves get; this one lies between the bounds.",
                scaling.factor);
  draft.mistake("kept", "That is what pairs with shorter waves get; this one lies between the bounds.", 1.0);
  draft.mistake("t turned round", "t is the share of the old frequency, not of the divided one.", blended(1 - kept));
  draft.mistake("divisors blended", "Frequencies are blended, not the numbers they are divided by.",
                kept + (1 - kept) * scaling.factor);
  draft.mistake("faster for slower", "That is how much faster it was before.", 1 / draft.answer);
  draft.mistake("2π left out", "A wavelength is 2π/ω, not 1/ω.",
                blended(std::min(1.0, std::max(0.0, share(1 / frequency)))));
  return draft;
}

}  // namespace posenc::lessons
