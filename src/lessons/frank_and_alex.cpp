#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "lessons/own_words.h"
#include "lessons/story_builder.h"
#include "lessons/story_matrices.h"
#include "lessons/tellers.h"
#include "posenc/apply.h"
#include "posenc/error.h"

namespace posenc::lessons {
namespace {

double mean_magnitude(const StoryMatrix& matrix) {
  double sum = 0;
  for (const double value : matrix.values) sum += std::fabs(value);
  return sum / static_cast<double>(matrix.values.size());
}

std::size_t place_in(const std::vector<std::string>& labels, std::string_view label) {
  const auto found = std::find(labels.begin(), labels.end(), label);
  if (found == labels.end()) raise(fmt::format("content: stories/frank-and-alex.json: no label '{}'", label));
  return found - labels.begin();
}

double at(const StoryMatrix& matrix, std::string_view row, std::string_view column) {
  return matrix.at(place_in(matrix.rows, row), place_in(matrix.columns, column));
}

// Parses "Alex Emma Daniel Frank": each person once, in the order of their seats.
std::vector<std::string> seated(std::string_view text, const std::vector<std::string>& people) {
  std::vector<std::string> names = own_words(text), sorted = names, all = people;
  std::sort(sorted.begin(), sorted.end());
  std::sort(all.begin(), all.end());
  if (sorted != all) {
    raise(fmt::format("text: must name {} once each, in the order of their seats", fmt::join(people, ", ")));
  }
  return names;
}

// The first `kept` features of each person, in the order of their seats.
std::vector<double> rows_in_order(const std::vector<double>& rows, const std::vector<std::string>& people,
                                  const std::vector<std::string>& names, std::size_t kept) {
  const std::size_t width = rows.size() / people.size();
  std::vector<double> result;
  for (const std::string& name : names) {
    const auto row = rows.begin() + static_cast<std::ptrdiff_t>(place_in(people, name) * width);
    result.insert(result.end(), row, row + static_cast<std::ptrdiff_t>(kept));
  }
  return result;
}

// Keeps one row of weights per feature.
StoryMatrix weights_of(MatrixLabels labels, std::vector<double> values) {
  values.resize(labels.rows.size() * labels.columns.size());
  return given(std::move(labels), std::move(values));
}

// A base or width equal to the story's own does not count as the reader's choice.
StoryOptions without_defaults(StoryOptions options, std::size_t features) {
  if (options.base == Sinusoidal{}.base) options.base.reset();
  if (options.width == static_cast<std::int64_t>(features)) options.width.reset();
  return options;
}

std::size_t asked_width(const StoryOptions& options, std::size_t features) {
  const std::int64_t most = static_cast<std::int64_t>(features), width = options.width.value_or(most);
  if (width < 2 || width > most || width % 2 != 0) {
    raise(fmt::format("width: must be an even number from 2 to {} but is {}", most, width));
  }
  return width;
}

std::vector<std::string> joined(std::vector<std::string> labels, const std::vector<std::string>& more) {
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

// [X P]
StoryMatrix beside(const StoryMatrix& x, const StoryMatrix& p) {
  std::vector<CellTerms> cells;
  for (std::size_t row = 0; row < x.rows.size(); ++row) {
    for (std::size_t i = 0; i < x.columns.size(); ++i) cells.push_back({"the cell of X", {{cell_factor(x, row, i)}}});
    for (std::size_t i = 0; i < p.columns.size(); ++i) cells.push_back({"the cell of P", {{cell_factor(p, row, i)}}});
  }
  return computed({"X'", "X' = [X P]", x.rows, joined(x.columns, p.columns)}, std::move(cells));
}

// [W; W]: the same weights for both halves of [X P].
StoryMatrix doubled(const StoryMatrix& weights, const StoryMatrix& p) {
  std::vector<CellTerms> cells;
  for (int half = 0; half < 2; ++half) {
    for (std::size_t row = 0; row < weights.rows.size(); ++row) {
      for (std::size_t i = 0; i < weights.columns.size(); ++i) {
        cells.push_back({fmt::format("the cell of {}", weights.name), {{cell_factor(weights, row, i)}}});
      }
    }
  }
  return computed({weights.name + "'", fmt::format("{0}' = [{0}; {0}]", weights.name),
                   joined(weights.rows, p.columns), weights.columns},
                  std::move(cells));
}

// Attention without one person: weights are normalised over fewer scores, values are unchanged.
Attended without_one(const Stages& all, std::size_t absent) {
  MatrixLabels weight_labels{"A-", fmt::format("A-: weights without {}", all.q.rows[absent]), {}, {}};
  std::vector<std::size_t> present;
  for (std::size_t i = 0; i < all.q.rows.size(); ++i) {
    if (i == absent) continue;
    present.push_back(i);
    weight_labels.rows.push_back(all.q.rows[i]);
  }
  weight_labels.columns = weight_labels.rows;
  std::vector<CellTerms> cells;
  for (const std::size_t row : present) {
    std::vector<CellFactor> powers;
    double sum = 0;
    for (const std::size_t i : present) {
      const CellFactor score = cell_factor(all.scores, row, i);
      powers.push_back({fmt::format("e^({})", score.name), std::exp(score.value)});
      sum += powers.back().value;
    }
    for (const CellFactor& power : powers) {
      cells.push_back({"e^S / Σ e^S over the row", {{power}}, "", CellFactor{"Σ", sum}, powers});
    }
  }
  Attended result;
  result.weights = computed(weight_labels, std::move(cells));
  std::vector<CellTerms> outputs;
  for (std::size_t row = 0; row < present.size(); ++row) {
    for (std::size_t column = 0; column < all.v.columns.size(); ++column) {
      CellTerms cell{"A- · V"};
      for (std::size_t i = 0; i < present.size(); ++i) {
        cell.terms.push_back({cell_factor(result.weights, row, i), cell_factor(all.v, present[i], column)});
      }
      outputs.push_back(std::move(cell));
    }
  }
  result.output = computed(
      {"O-", fmt::format("O- = A- · V: output without {}", all.q.rows[absent]), weight_labels.rows, all.v.columns},
      std::move(outputs));
  return result;
}

std::string row_text(const StoryMatrix& matrix, std::size_t row, int digits) {
  std::vector<std::string> cells;
  for (const double value : row_of(matrix, row)) cells.push_back(shown_number(value, digits));
  return fmt::format("({})", fmt::join(cells, ", "));
}

struct Closest {
  double distance = std::numeric_limits<double>::infinity();
  std::size_t one = 0, other = 0;
};

Closest closest_rows(const std::vector<double>& table, std::size_t width) {
  Closest result;
  const std::size_t rows = table.size() / width;
  for (std::size_t one = 0; one < rows; ++one) {
    for (std::size_t other = one + 1; other < rows; ++other) {
      double sum = 0;
      for (std::size_t i = 0; i < width; ++i) {
        const double difference = table[one * width + i] - table[other * width + i];
        sum += difference * difference;
      }
      if (sum < result.distance) result = {sum, one, other};
    }
  }
  result.distance = std::sqrt(result.distance);
  return result;
}

std::vector<double> rows_at(const Sinusoidal& scheme, const std::vector<std::int64_t>& positions) {
  std::vector<double> rows(positions.size() * scheme.width);
  tabulate(view(rows.data(), {static_cast<std::int64_t>(positions.size()), scheme.width}), {.ids = positions},
           prepare(scheme));
  return rows;
}

void show_requirements(StoryBuilder& story, const StoryContent& content, const Sinusoidal& scheme,
                       const StoryMatrix& p, std::int64_t last_seat) {
  const std::size_t width = scheme.width;
  const std::int64_t first = content.integer("first_position");
  const std::int64_t up_to = content.integer("unique_up_to");
  std::vector<std::int64_t> seats(up_to - first + 1);
  std::iota(seats.begin(), seats.end(), first);
  const Closest closest = closest_rows(rows_at(scheme, seats), width);
  // The last seat on its own, and among others in a different order.
  const std::vector<double> alone = rows_at(scheme, {last_seat});
  const std::vector<double> elsewhere = rows_at(scheme, {last_seat + 3, last_seat, 0});
  const std::span<const double> here = row_of(p, p.rows.size() - 1);
  const bool is_consistent = std::equal(here.begin(), here.end(), alone.begin()) &&
                             std::equal(here.begin(), here.end(), elsewhere.begin() + scheme.width);
  const std::vector<std::int64_t> far = content.integers("far");
  const std::vector<double> far_rows = rows_at(scheme, far);
  const bool is_defined = std::all_of(far_rows.begin(), far_rows.end(), [](double v) { return std::fabs(v) <= 1; });
  story.show({check(fmt::format("unique among seats {} to {}", first, up_to), closest.distance > 0),
              residual(fmt::format("smallest distance, between rows {} seats apart", closest.other - closest.one),
                       closest.distance),
              check(fmt::format("seat {} has the same row in every sequence", last_seat), is_consistent),
              check(fmt::format("defined and within [-1, 1] at seat {}", far.back()), is_defined)});
  story.show(waves({"F", "F: rows of far seats", as_labels(far), p.columns}, scheme, far));
  story.note("defined");
}

// P · W: what each seat adds to queries, keys and values, compared with the source text's claims.
void show_alone(StoryBuilder& story, const StoryMatrix& p, const Projections& weights, const Stages& without,
                const Stages& with) {
  story.show(product("PQ", "PQ = P · W_Q: what position adds to the queries", p, weights.q));
  story.show(product("PK", "PK = P · W_K: what position adds to the keys", p, weights.k));
  story.show(product("PV", "PV = P · W_V: what position adds to the values", p, weights.v));
  const std::size_t seat = place_in(without.q.rows, "Daniel"), upscale = place_in(weights.q.columns, "upscale");
  story.say("daniel_d1", p.at(seat, 1));
  story.say("daniel_d1_adds", p.at(seat, 1) * weights.q.at(1, upscale));
  story.say("daniel_d5_adds", p.at(seat, 5) * weights.q.at(5, upscale));
  story.say("stall_before", at(without.k, "Daniel", "knows-street-stall"));
  story.say("stall_after", at(with.k, "Daniel", "knows-street-stall"));
  story.say("sichuan_before", at(without.v, "Daniel", "info-sichuan"));
  story.say("sichuan_after", at(with.v, "Daniel", "info-sichuan"));
  story.say("alex_before", at(without.v, "Alex", "info-sichuan"));
  story.say("alex_after", at(with.v, "Alex", "info-sichuan"));
  for (const char* const note : {"daniel_query", "daniel_key", "daniel_value", "alex_value"}) story.note(note);
}

void show_concatenated(StoryBuilder& story, const StoryMatrix& x, const StoryMatrix& p, const StoryMatrix& sum,
                       const Projections& weights) {
  const StoryMatrix both = beside(x, p);
  double largest = 0;
  std::size_t outputs = 0;
  for (const StoryMatrix* const by : {&weights.q, &weights.k, &weights.v}) {
    const StoryMatrix concatenated = product("", "", both, doubled(*by, p)), added = product("", "", sum, *by);
    largest = std::max(largest, largest_difference(concatenated, added));
    outputs += by->columns.size();
  }
  const auto numbers = static_cast<std::int64_t>(x.columns.size() * outputs);
  story.say("added", std::to_string(numbers));
  story.say("concatenated", std::to_string(2 * numbers));
  story.show({count("width of a row, added", static_cast<std::int64_t>(x.columns.size())),
              count("width of a row, concatenated", static_cast<std::int64_t>(2 * x.columns.size())),
              count("parameters of W_Q, W_K, W_V, added", numbers),
              count("parameters of W_Q, W_K, W_V, concatenated", 2 * numbers),
              residual("largest |[X P]·[W; W] − (X + P)·W|", largest)});
}

// What the steps share: who sits where, and the matrices as they come about.
struct Dinner {
  StoryBuilder& story;
  const StoryContent& content;
  const StoryOptions& options;
  bool is_own;
  std::vector<std::string> features, people, names;
  std::vector<std::int64_t> seats = {};
  std::size_t one = 0, other = 0;  // of the two who are alike
  Sinusoidal scheme = {};
  std::string apart = {};  // ‖Frank − Alex‖
  Projections weights = {};
  StoryMatrix x = {}, p = {}, sum = {}, input = {};
  Stages without = {}, with = {};

  double distance(const StoryMatrix& matrix) const { return row_distance(matrix, one, other); }
  int digits() const { return options.digits.value_or(without.q.digits); }
};

void take_seats(Dinner& at) {
  const std::vector<std::string> alike = at.content.texts("alike");
  const auto seat_of = [&](const std::string& name) {
    const auto found = std::find(at.names.begin(), at.names.end(), name);
    if (found == at.names.end()) {
      raise(fmt::format("content: stories/{}.json: no person {}", at.content.name(), name));
    }
    return static_cast<std::size_t>(found - at.names.begin());
  };
  at.one = seat_of(alike.front()), at.other = seat_of(alike.back());
  at.seats.resize(at.names.size());
  std::iota(at.seats.begin(), at.seats.end(), at.content.integer("first_position"));
  at.scheme.width = static_cast<std::int64_t>(at.features.size());
  at.scheme.base = at.options.base.value_or(at.scheme.base);
  at.apart = fmt::format("‖{} − {}‖", at.names[at.one], at.names[at.other]);
  at.story.say("one", at.names[at.one]);
  at.story.say("other", at.names[at.other]);
  at.story.say("one_seat", std::to_string(at.seats[at.one]));
  at.story.say("other_seat", std::to_string(at.seats[at.other]));
  at.story.say("first_position", std::to_string(at.seats.front()));
}

// What each person looks for, in words: the features above one half.
std::vector<StoryFact> profiles(const Dinner& at) {
  std::vector<StoryFact> result;
  for (std::size_t row = 0; row < at.names.size(); ++row) {
    std::vector<std::string> wanted;
    for (std::size_t i = 0; i < at.features.size(); ++i) {
      if (at.x.at(row, i) > 0.5) wanted.push_back(at.features[i]);
    }
    result.push_back(
        worded(fmt::format("seat {}, {}", at.seats[row], at.names[row]), fmt::format("{}", fmt::join(wanted, ", "))));
  }
  return result;
}

void show_before(Dinner& at) {
  StoryBuilder& story = at.story;
  const StoryContent& content = at.content;
  story.step("table");
  at.x = given({"X", "X: one row per person", at.names, at.features},
               rows_in_order(content.table("x"), at.people, at.names, at.features.size()));
  story.show(profiles(at));
  story.show(at.x);
  story.show({fact(fmt::format("{} in X", at.apart), at.distance(at.x))});

  story.step("weights");
  at.weights.q = story.show(
      weights_of({"W_Q", "W_Q: features to queries", at.features, content.texts("queries")}, content.table("w_q")));
  at.weights.k = story.show(
      weights_of({"W_K", "W_K: features to keys", at.features, content.texts("keys")}, content.table("w_k")));
  at.weights.v = story.show(
      weights_of({"W_V", "W_V: features to values", at.features, content.texts("values")}, content.table("w_v")));

  story.step("before");
  const Stages& without = at.without = stages_of(at.x, "", at.weights);
  for (const StoryMatrix* const matrix :
       {&without.q, &without.k, &without.v, &without.scores, &without.weights, &without.output}) {
    story.show(*matrix);
  }
  story.show({fact(fmt::format("{} in O", at.apart), at.distance(without.output))});

  story.step("exists");
  const Attended fewer = without_one(without, at.one);
  story.show(fewer.weights);
  story.show(fewer.output);
  story.say("emma_with", row_text(without.output, place_in(at.names, "Emma"), at.digits()));
  story.say("emma_without", row_text(fewer.output, place_in(fewer.output.rows, "Emma"), at.digits()));
  if (!at.is_own) story.note("row_wise");
}

// P, and X' from X and P. Returns the weights that X' is multiplied with.
Projections show_positions(Dinner& at) {
  StoryBuilder& story = at.story;
  story.step("positions");
  const std::vector<double> frequencies = frequencies_of(at.scheme);
  story.say("frequencies", fmt::format("{:.4g}", fmt::join(frequencies, ", ")));
  story.formula(fmt::format("P(p, 2i) = sin(p · ω_i),  P(p, 2i+1) = cos(p · ω_i),  ω_i = {}^(−2i/{})", at.scheme.base,
                            at.scheme.width));
  at.p = story.show(waves({"P", "P: one row per seat", as_labels(at.seats), numbered("d", at.features.size())},
                          at.scheme, at.seats));

  story.step("sum");
  const bool is_concatenated = at.options.concatenated;
  at.sum = added({"X'", "X' = X + P", at.names, at.features}, at.x, at.p, at.scheme, at.seats);
  story.say("join", is_concatenated ? "Concatenate" : "Add");
  story.say("joined", is_concatenated ? "Concatenated, not added" : "Added, not concatenated");
  at.input = story.show(is_concatenated ? beside(at.x, at.p) : at.sum);
  Projections projections = at.weights;
  if (is_concatenated) {
    for (StoryMatrix* const by : {&projections.q, &projections.k, &projections.v}) {
      *by = story.show(doubled(*by, at.p));
    }
  }
  story.show({fact(fmt::format("{} in X'", at.apart), at.distance(at.input)), fact("mean |P|", mean_magnitude(at.p)),
              fact("mean |X|", mean_magnitude(at.x))});
  story.say("mean_p", mean_magnitude(at.p));
  story.say("mean_x", mean_magnitude(at.x));
  if (!at.options.base && frequencies.size() > 1) story.note("bands");
  if (!at.is_own) story.note("nudge");
  return projections;
}

void show_after(Dinner& at, const Projections& projections) {
  StoryBuilder& story = at.story;
  const Stages& with = at.with = stages_of(at.input, at.input.name.substr(1), projections);
  if (!at.is_own) {
    story.step("alone");
    show_alone(story, at.p, at.weights, at.without, with);
  }
  story.step("queries");
  story.say("query_before", row_text(at.without.q, at.one, at.digits()));
  story.say("query_one", row_text(with.q, at.one, at.digits()));
  story.say("query_other", row_text(with.q, at.other, at.digits()));
  story.show(with.q);
  story.step("keys");
  story.show(with.k);
  story.step("values");
  story.show(with.v);
  story.step("scores");
  story.say("key_width", std::to_string(with.q.columns.size()));
  story.say("row_width", std::to_string(at.features.size()));
  story.show(with.scores);
  if (!at.options.width) story.note("root");
  story.show(with.weights);
  story.step("output");
  story.show(with.output);
}

void show_distances(Dinner& at) {
  const Stages &without = at.without, &with = at.with;
  at.story.step("distances");
  std::vector<CellTerms> distances;
  for (const auto& [before, after] : {std::pair<const StoryMatrix*, const StoryMatrix*>{&at.x, &at.input},
                                      {&without.q, &with.q},
                                      {&without.k, &with.k},
                                      {&without.v, &with.v},
                                      {&without.scores, &with.scores},
                                      {&without.weights, &with.weights},
                                      {&without.output, &with.output}}) {
    for (const StoryMatrix* const matrix : {before, after}) {
      distances.push_back(row_distance_terms(*matrix, at.one, at.other));
    }
  }
  at.story.show(computed({"D",
                          fmt::format("D: {}", at.apart),
                          {"X", "Q", "K", "V", "scores", "weights", "output"},
                          {"without", "with-position"}},
                         std::move(distances)));
}

}  // namespace

Story tell_frank_and_alex(const StoryContent& content, const StoryOptions& asked) {
  std::vector<std::string> features = content.texts("features");
  const StoryOptions options = without_defaults(asked, features.size());
  features.resize(asked_width(options, features.size()));
  StoryBuilder story(content, options);
  if (!options.other.empty()) raise("text: frank-and-alex has one order of seats, not two");
  const std::vector<std::string> people = content.texts("names");
  Dinner at{story,
            content,
            options,
            lessons::is_own(options),
            std::move(features),
            people,
            options.text.empty() ? people : seated(options.text, people)};
  take_seats(at);
  show_before(at);
  const Projections projections = show_positions(at);
  show_after(at, projections);
  show_distances(at);
  story.step("requirements");
  show_requirements(story, content, at.scheme, at.p, at.seats.back());
  story.step("concatenated");
  show_concatenated(story, at.x, at.p, at.sum, at.weights);
  return story.finish();
}

}  // namespace posenc::lessons
