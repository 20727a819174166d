// Frequencies, dot products and scores of a scheme, as the program computes them.

#include <cstring>
#include <variant>

#include "explorer/wasm/call.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/properties.h"
#include "posenc/scheme.h"

namespace posenc::page {
namespace {

void keep(Answer& answer, const std::vector<double>& values) {
  const std::size_t from = answer.bytes.size();
  answer.bytes.resize(from + values.size() * sizeof(double));
  if (!values.empty()) std::memcpy(answer.bytes.data() + from, values.data(), values.size() * sizeof(double));
}

}  // namespace

/// Radians per position of each pair.
Answer frequencies(const Question& question) {
  const Form form = prepare(asked_scheme(question.fields), {.length = integer(question.fields, "length", 0)});
  Answer answer;
  if (const Waves* waves = waves_of(form)) {
    keep(answer, frequencies_of(*waves));
  } else if (const auto* rotation = std::get_if<Rotation>(&form)) {
    keep(answer, frequencies_of(*rotation));
    answer.json = Json::Object{{"magnitude", rotation->magnitude}, {"softmax_factor", rotation->softmax_factor}};
  } else {
    raise("frequencies: the scheme has none");
  }
  return answer;
}

/// For each distance: pairs looked at, least and largest dot product, closed form.
Answer dots(const Question& question) {
  const std::int64_t length = integer(question.fields, "length", 64);
  const Trial trial = make_trial(asked_scheme(question.fields), {.length = length});
  Answer answer;
  std::vector<double> values;
  for (const DotProducts& one : dot_by_distance(trial.form, trial.length)) {
    values.insert(values.end(), {static_cast<double>(one.offset.front()), one.least, one.most, one.closed_form});
  }
  keep(answer, values);
  answer.json = Json::Object{{"columns", 4}, {"random", trial.has_random_weights}};
  return answer;
}

/// What a bias adds to the score of query i and key j, for one head: [n, n].
Answer scores(const Question& question) {
  const std::int64_t n = integer(question.fields, "length", 32), head = integer(question.fields, "head", 0);
  const Trial trial = make_trial(asked_scheme(question.fields), {.length = n});
  const auto* const form = std::get_if<Bias>(&trial.form);
  if (form == nullptr) raise("scores: the scheme adds nothing to scores");
  if (n < 1 || n > 2048) raise("scores: length must be 1 to 2048");
  std::vector<double> values(static_cast<std::size_t>(n * n));
  const Bias one = head_of(*form, head);
  bias(view(values.data(), {1, n, n}), {}, {}, one);
  Answer answer;
  keep(answer, values);
  answer.json = Json::Object{{"heads", form->heads}, {"random", trial.has_random_weights}};
  return answer;
}

}  // namespace posenc::page
