// Exercises on scores: biases, softmax, and how much the tables hold.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "lessons/draft.h"
#include "lessons/quantities.h"

namespace posenc::lessons {
namespace {

double whole_number(std::int64_t value) { return static_cast<double>(value); }

std::string bucket_working(const T5& scheme, std::int64_t size, bool ahead, std::int64_t answer) {
  const std::int64_t one_way = scheme.bidirectional ? scheme.buckets / 2 : scheme.buckets, exact = one_way / 2;
  std::string text;
  if (!scheme.bidirectional && ahead) {
    text = "keys ahead count as distance 0";
  } else if (size < exact) {
    text = fmt::format("{} is below {}, so it has its own bucket", size, exact);
  } else {
    text = fmt::format("{} + ⌊ln({}/{}) / ln({}/{}) · {}⌋, at most {}", exact, size, exact, scheme.max_distance,
                       exact, one_way - exact, one_way - 1);
  }
  if (scheme.bidirectional && ahead) text += fmt::format("; and {} more, for keys ahead", one_way);
  return fmt::format("{}: {}", text, answer);
}

}  // namespace

Draft draft_alibi_bias(Draw& draw) {
  const Alibi alibi{.heads = draw.one_of<std::int64_t>({4, 6, 8, 8, 12, 16})};
  const std::int64_t head = draw.between(0, alibi.heads - 1);
  const std::int64_t key = draw.between(0, 30), distance = draw.between(2, 20), query = key + distance;
  const Bias form = prepare(alibi);
  const auto slope_of = [&](const Alibi& scheme, std::int64_t h) { return -bias_at(prepare(scheme), h, 1, 0); };
  const double slope = slope_of(alibi, head);
  const double delta = whole_number(distance);

  Draft draft;
  draft.answer = bias_at(form, head, query, key);
  draft.decimals = std::max(3, decimals_for(draft.answer, 3));
  draft.give("heads", alibi.heads, "head", head, "query", query, "key", key);
  draft.prompt = fmt::format(
      "ALiBi with {} heads: what is added to the score of a query at position {} and a key at position {} in head {} "
      "(heads count from 0)? ({})",
      alibi.heads, query, key, head, asked_for(draft.decimals));
  draft.hint =
      "−slope · distance. For a power of two of heads, slope = 2^(−8(h+1)/heads); other numbers of heads take the "
      "slopes of the power of two below, then every other slope of twice as many.";
  draft.working = fmt::format("slope {} · distance {}, with a minus: {:.{}f}", plain(slope), distance, draft.answer,
                              draft.decimals);
  draft.command = fmt::format("posenc table alibi --heads {} --queries {} --keys {} --digits {}", alibi.heads, query,
                              key, draft.decimals);
  const double naive = std::pow(2.0, -8 * whole_number(head + 1) / whole_number(alibi.heads));
  draft.mistake("plus for minus", "Distance costs: the bias is negative.", -draft.answer);
  draft.mistake("heads from 1",
                fmt::format("Heads count from 0: the exponent is −8(h+1)/{}, not −8h/{}.", alibi.heads, alibi.heads),
                -delta * std::pow(2.0, -8 * whole_number(head) / whole_number(alibi.heads)));
  draft.mistake("formula for powers of two",
                fmt::format("{} is no power of two: its slopes come in two runs.", alibi.heads), -delta * naive);
  draft.mistake("slope alone", "The slope is multiplied with the distance.", -slope);
  draft.mistake("distance alone", "The distance is multiplied with the head's slope.", -delta);
  draft.mistake("both ends counted", fmt::format("From {} to {} it is {} steps.", key, query, distance),
                draft.answer - slope);
  draft.mistake("position for distance", "The query's distance to the key counts, not its position.",
                -slope * whole_number(query));
  draft.mistake("8 left out", "The exponent has an 8: the last of a power of two of heads has slope 2^−8.",
                -delta * std::pow(2.0, -whole_number(head + 1) / whole_number(alibi.heads)));
  return draft;
}

Draft draft_t5_bucket(Draw& draw) {
  const T5 t5{.bidirectional = draw.between(0, 1) == 1};
  T5 other = t5;
  other.bidirectional = !t5.bidirectional;
  const std::int64_t size = draw.between(0, 2) == 0 ? draw.between(1, 15) : draw.between(8, 160);
  const bool ahead = t5.bidirectional && draw.between(0, 1) == 1;
  const std::int64_t distance = ahead ? size : -size;
  const std::int64_t query = ahead ? draw.between(0, 50) : size + draw.between(0, 50);
  const auto bucket = [](const T5& scheme, std::int64_t d) { return whole_number(entry_at(buckets_of(scheme), d)); };

  Draft draft;
  draft.whole = true;
  draft.decimals = 0;
  draft.answer = bucket(t5, distance);
  draft.give("bidirectional", t5.bidirectional ? 1 : 0, "query", query, "key", query + distance);
  draft.prompt = fmt::format(
      "T5's {} has {} buckets and max_distance {}. Which bucket have the query at position {} and the key at {}? (a "
      "whole number)",
      t5.bidirectional ? "encoder" : "decoder", t5.buckets, t5.max_distance, query, query + distance);
  draft.hint = t5.bidirectional
                   ? "Half of the buckets are for keys ahead. Of each half, the first half is one for each distance, "
                     "and the rest widen as a logarithm."
                   : "Half of the buckets are one for each distance, the rest widen as a logarithm; rounded down.";
  draft.working = bucket_working(t5, size, ahead, static_cast<std::int64_t>(draft.answer));
  const std::int64_t one_way = t5.bidirectional ? t5.buckets / 2 : t5.buckets, exact = one_way / 2;
  const double logarithm = std::log(whole_number(size) / whole_number(exact)) /
                           std::log(whole_number(t5.max_distance) / whole_number(exact)) *
                           whole_number(one_way - exact);
  if (t5.bidirectional) {
    draft.mistake("ahead and behind swapped", "Keys ahead have the upper half of the buckets.",
                  bucket(t5, -distance));
  }
  draft.mistake(t5.bidirectional ? "decoder for encoder" : "encoder for decoder",
                t5.bidirectional ? "An encoder keeps half of its buckets for keys ahead."
                                 : "A decoder looks back only and has all buckets for that.",
                bucket(other, t5.bidirectional ? -size : distance));
  if (size >= exact) {
    draft.mistake("rounded up", "The logarithm is cut off, not rounded up.", draft.answer + 1);
    draft.mistake("first half forgotten", "The widening buckets begin after those with one distance each.",
                  draft.answer - whole_number(exact));
    draft.mistake("max_distance without E", "The divisor is ln(max_distance/E), not ln(max_distance).",
                  whole_number(exact) + (ahead ? whole_number(one_way) : 0.0) +
                      std::trunc(logarithm * std::log(whole_number(t5.max_distance) / whole_number(exact)) /
                                 std::log(whole_number(t5.max_distance))));
  }
  draft.mistake("distance for bucket", fmt::format("Only distances below {} are their own bucket.", exact),
                whole_number(size));
  draft.mistake("one too few", "Buckets count from 0.", draft.answer - 1);
  return draft;
}

Draft draft_kerple_bias(Draw& draw) {
  const double amplitude = draw.one_of<double>({0.5, 0.8, 1.2, 1.5, 2.0}),
               rate = draw.one_of<double>({0.2, 0.5, 2.0});
  const std::int64_t distance = draw.between(2, 40), query = distance + draw.between(0, 20);
  const double delta = whole_number(distance);
  Draft draft;
  draft.answer = bias_at(prepare(Kerple{.amplitudes = {amplitude}, .rates = {rate}}, {.length = 128}), 0, query,
                         query - distance);
  draft.give("amplitude", amplitude, "rate", rate, "query", query, "key", query - distance);
  draft.prompt = fmt::format(
      "KERPLE's logarithmic kernel with amplitude {:.1f} and rate {:.1f}: what is added to the score of a query at "
      "position {} and a key at {}? ({})",
      amplitude, rate, query, query - distance, asked_for(draft.decimals));
  draft.hint = "−a · ln(1 + r · distance).";
  draft.working = fmt::format("−{:.1f} · ln(1 + {:.1f} · {}) = {:.3f}", amplitude, rate, distance, draft.answer);
  draft.command = fmt::format("posenc table kerple --amplitudes {:.1f} --rates {:.1f} --queries {} --keys {}",
                              amplitude, rate, query, query - distance);
  draft.mistake("plus for minus", "Distance costs: the bias is negative.", -draft.answer);
  draft.mistake("log base 10", "The logarithm is the natural one.", -amplitude * std::log10(1 + rate * delta));
  draft.mistake("log base 2", "The logarithm is the natural one.", -amplitude * std::log2(1 + rate * delta));
  draft.mistake("1 left out", "It is ln(1 + r·distance): at distance 0 nothing is added.",
                -amplitude * std::log(rate * delta));
  draft.mistake("rate outside", "The rate stands inside the logarithm.", -amplitude * rate * std::log(1 + delta));
  draft.mistake("both ends counted", fmt::format("The distance is {}.", distance),
                -amplitude * std::log(1 + rate * (delta + 1)));
  draft.mistake("power kernel", "−a · distance^r is KERPLE's other kernel.", -amplitude * std::pow(delta, rate));
  return draft;
}

Draft draft_softmax_weight(Draw& draw) {
  const std::int64_t features = draw.one_of<std::int64_t>({4, 16, 64});
  const double root = std::sqrt(whole_number(features));
  std::array<double, 3> products{}, scores{};
  for (std::size_t i = 0; i < products.size(); ++i) {
    products[i] = draw.decimal(-2, 4, 1);
    scores[i] = products[i] / root;
  }
  const auto which = static_cast<std::size_t>(draw.between(0, 2));
  const auto weight_of = [&](const auto& power) {
    double sum = 0;
    for (const double score : products) sum += power(score);
    return power(products[which]) / sum;
  };

  Draft draft;
  draft.answer = softmax_weight(scores, which);
  draft.give("features", features, "first", products[0], "second", products[1], "third", products[2], "which", which);
  draft.prompt = fmt::format(
      "A query of {} features has dot products {:.1f}, {:.1f} and {:.1f} with three keys. How much weight does "
      "attention give to key {} (the first is key 1)? ({})",
      features, products[0], products[1], products[2], which + 1, asked_for(draft.decimals));
  draft.hint = "Divide by √features, then e^score over the sum of all three.";
  draft.working = fmt::format("scores {:.3f}, {:.3f}, {:.3f}; e^{:.3f} over their sum = {:.3f}", scores[0], scores[1],
                              scores[2], scores[which], draft.answer);
  draft.mistake("√d left out", "Dot products are divided by the root of the number of features first.",
                weight_of([](double x) { return std::exp(x); }));
  draft.mistake("d for √d", "Divided by d; it is the root of d.",
                weight_of([&](double x) { return std::exp(x / whole_number(features)); }));
  draft.mistake("× for ÷", "Dot products are divided by √d, not multiplied with it.",
                weight_of([&](double x) { return std::exp(x * root); }));
  draft.mistake("2 for e", "The softmax takes powers of e.",
                weight_of([&](double x) { return std::exp2(x / root); }));
  draft.mistake("not normalised", "The weights of all keys add up to 1.", std::exp(scores[which]));
  draft.mistake("exponential left out", "Weights are shares of e^score, not of the scores.",
                weight_of([](double x) { return x; }));
  draft.mistake("score for weight", "That is the score, before the softmax.", scores[which]);
  return draft;
}

Draft draft_table_size(Draw& draw) {
  Draft draft;
  draft.whole = true;
  draft.decimals = 0;
  const std::int64_t kind = draw.between(0, 3);
  if (kind == 0) {
    const std::int64_t length = draw.one_of<std::int64_t>({512, 1024, 2048}), width = draw.between(1, 12) * 64;
    const std::int64_t offset = draw.one_of<std::int64_t>({0, 2, 2});
    draft.answer = whole_number((length + offset) * width);
    draft.give("rows", length, "offset", offset, "width", width);
    draft.prompt = fmt::format(
        "A learned table for sequences of {} tokens, {} features, {}: how many trained numbers does it hold?", length,
        width, offset == 0 ? "position 0 reading row 0" : "position 0 reading row 2");
    draft.hint = "One vector for each row, and the rows in front of position 0 are there too.";
    draft.working = fmt::format("({} + {}) · {} = {:.0f}", length, offset, width, draft.answer);
    draft.mistake("offset left out", "The rows before position 0 are part of the table.",
                  whole_number(length * width));
    draft.mistake("sum for product", "Each row has all features: multiply.", whole_number(length + offset + width));
    draft.mistake("last position for count", fmt::format("Positions 0 to {} are {} rows.", length - 1, length),
                  whole_number((length + offset - 1) * width));
    draft.mistake("a number for each position", "Each position has a vector, not a number.",
                  whole_number(length + offset));
    return draft;
  }
  const std::int64_t heads = draw.one_of<std::int64_t>({3, 4, 6, 8, 12, 16});
  if (kind == 1) {
    const std::int64_t window = draw.between(4, 12), offsets = 2 * window - 1;
    draft.answer = whole_number(offsets * offsets * heads);
    draft.give("window", window, "heads", heads);
    draft.prompt = fmt::format(
        "Swin's bias table for windows of {} × {} patches and {} heads: how many trained numbers does it hold?",
        window, window, heads);
    draft.hint = "Along one side, how many different offsets can two patches have?";
    draft.working = fmt::format("offsets −{} … {} along each side: {}² · {} = {:.0f}", window - 1, window - 1,
                                offsets, heads, draft.answer);
    draft.mistake("2W for 2W − 1", "Offset 0 is one offset, not two.", whole_number(4 * window * window * heads));
    draft.mistake("one side only", "Offsets along both sides: squared.", whole_number(offsets * heads));
    draft.mistake("a number for each pair of patches", "Pairs with the same offset share a number.",
                  whole_number(window * window * window * window * heads));
    draft.mistake("heads left out", "Each head has numbers of its own.", whole_number(offsets * offsets));
    draft.mistake("a number for each patch", "The table is of offsets, not of patches.",
                  whole_number(window * window * heads));
    return draft;
  }
  if (kind == 2) {
    const std::int64_t buckets = draw.one_of<std::int64_t>({32, 32, 64}),
                       reach = draw.one_of<std::int64_t>({128, 256});
    const std::int64_t layers = draw.one_of<std::int64_t>({6, 12, 24});
    draft.answer = whole_number(buckets * heads);
    draft.give("buckets", buckets, "heads", heads, "layers", layers);
    draft.prompt = fmt::format(
        "T5's encoder: {} layers that share one table, {} heads, {} buckets, max_distance {}. How many trained "
        "numbers say where tokens stand?",
        layers, heads, buckets, reach);
    draft.hint = "One number for each bucket and head; the layers share them.";
    draft.working = fmt::format("{} · {} = {:.0f}", buckets, heads, draft.answer);
    draft.mistake("a table for each layer", "The layers share one table.", whole_number(buckets * heads * layers));
    draft.mistake("distances for buckets", "Distances share buckets: there are fewer of these.",
                  whole_number(reach * heads));
    draft.mistake("both directions again", "The buckets are those of both directions already.",
                  whole_number(2 * buckets * heads));
    draft.mistake("heads left out", "Each head has numbers of its own.", whole_number(buckets));
    return draft;
  }
  const std::int64_t reach = draw.one_of<std::int64_t>({8, 16, 32, 64}), width = draw.one_of<std::int64_t>({32, 64});
  draft.answer = whole_number((2 * reach + 1) * width);
  draft.give("reach", reach, "width", width);
  draft.prompt = fmt::format(
      "Shaw's relative vectors, clipped at {} in both directions, {} features, the same for all heads: how many "
      "trained numbers?",
      reach, width);
  draft.hint = "How many distances are there from −k to k?";
  draft.working = fmt::format("(2 · {} + 1) · {} = {:.0f}", reach, width, draft.answer);
  draft.mistake("distance 0 left out", "A token is at distance 0 from itself: 2k + 1 vectors.",
                whole_number(2 * reach * width));
  draft.mistake("one direction", "Ahead and behind have vectors of their own.", whole_number((reach + 1) * width));
  draft.mistake("a number for each distance", "Each distance has a vector.", whole_number(2 * reach + 1));
  draft.mistake("a vector for each head", "The heads share the vectors here.",
                whole_number((2 * reach + 1) * width * heads));
  return draft;
}

}  // namespace posenc::lessons
