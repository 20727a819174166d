#include "posenc/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <set>

#include "formats/excerpt.h"
#include "models/engines.h"
#include "posenc/apply.h"
#include "posenc/attention.h"
#include "posenc/error.h"
#include "posenc/half.h"

namespace posenc {
namespace {

using namespace models;

constexpr auto kDefaultEngines = std::to_array<std::string_view>({"hf", "vllm", "llama.cpp", "ctranslate2"});
constexpr std::int64_t kUsualLength = 4096, kLongest = std::int64_t{1} << 40;

// The probed tokens: the first, the last, and others in between, more closely spaced at short distances.
std::vector<std::int64_t> probed(std::int64_t length) {
  constexpr std::int64_t kEnds = 64, kBetween = 256;
  std::set<std::int64_t> tokens;
  for (std::int64_t i = 0; i < std::min(kEnds, length); ++i) tokens.insert({i, length - 1 - i});
  for (std::int64_t i = 0; i < kBetween; ++i) {
    tokens.insert(static_cast<std::int64_t>(static_cast<double>(length - 1) * static_cast<double>(i) / kBetween));
    tokens.insert(static_cast<std::int64_t>(
        std::pow(static_cast<double>(length), static_cast<double>(i) / static_cast<double>(kBetween)) - 0.5));
  }
  return {tokens.begin(), tokens.end()};
}

// The result of a treatment for the probed tokens: rotations [tokens, pairs], or a bias [heads, tokens] for the last
// one.
struct Effect {
  bool is_rotation = true;
  std::size_t columns = 0;
  std::vector<std::complex<double>> rotations;
  std::vector<double> biases;
  std::vector<double> temperatures;  // of the probed tokens' queries; empty: 1
  double softmax_factor = 1.0;
  double magnitude = 1.0;
};

void stop_unclaimed(Rotation& form, const Rope& rope) {
  const std::size_t axes = rope.sections.size();
  for (std::size_t i = 0; i < form.frequencies.size(); ++i) {
    const bool is_claimed = i < axes * static_cast<std::size_t>(rope.sections[i % axes]);
    if (!is_claimed) form.frequencies[i] = Frequency{};
  }
}

template <class T> std::vector<std::complex<double>> rotations_of(const Rotation& form, const Positions& positions,
                                                                  std::int64_t tokens) {
  const std::int64_t pairs = pairs_of(form);
  std::vector<T> cosines(tokens * pairs), sines(cosines.size());
  tabulate(view(cosines.data(), {tokens, pairs}), view(sines.data(), {tokens, pairs}), positions, form);
  std::vector<std::complex<double>> rotations(cosines.size());
  for (std::size_t i = 0; i < rotations.size(); ++i) rotations[i] = {to_double(cosines[i]), to_double(sines[i])};
  return rotations;
}

Effect effect_of_rope(const EngineScheme& t, const Rope& rope) {
  Rotation form = prepare(rope, t.prepare);
  form.magnitude *= t.magnitude_factor;
  if (t.leaves_unclaimed) stop_unclaimed(form, rope);
  // text: the same position on all axes
  std::vector<std::int64_t> ids;
  for (int axis = 0; axis < form.position_axes; ++axis) {
    ids.insert(ids.end(), t.positions.begin(), t.positions.end());
  }
  const Positions positions{.ids = ids, .axes = form.position_axes};
  const std::int64_t tokens = std::ssize(t.positions);
  return {.is_rotation = true,
          .columns = static_cast<std::size_t>(pairs_of(form)),
          .rotations = t.has_bf16_table ? rotations_of<BFloat16>(form, positions, tokens)
                                        : rotations_of<double>(form, positions, tokens),
          .biases = {},
          .temperatures = {},
          .softmax_factor = form.softmax_factor,
          .magnitude = form.magnitude};
}

Effect effect_of_bias(const EngineScheme& t, const Alibi& alibi) {
  Bias form = prepare(alibi, t.prepare);
  if (!t.slopes.empty()) std::get<Slopes>(form.source).slopes = t.slopes;
  const std::int64_t tokens = std::ssize(t.positions);
  const Extents shape = {alibi.heads, 1, tokens};
  Effect effect{.is_rotation = false,
                .columns = static_cast<std::size_t>(tokens),
                .rotations = {},
                .biases = {},
                .temperatures = {}};
  if (t.is_absolute_bf16) {
    // slope times the key's position is minus the bias of a query at 0
    std::vector<BFloat16> rounded(alibi.heads * tokens);
    bias(view(rounded.data(), shape), {.first = 0}, {.ids = t.positions}, form);
    for (const BFloat16& value : rounded) effect.biases.push_back(-to_double(value));
  } else {
    effect.biases.resize(alibi.heads * tokens);
    bias(view(effect.biases.data(), shape), {.first = t.positions.back()}, {.ids = t.positions}, form);
  }
  // what all keys of a query share cancels in the softmax
  for (std::size_t row = 0; row < effect.biases.size(); row += effect.columns) {
    const double own = effect.biases[row + effect.columns - 1];
    for (std::size_t i = 0; i < effect.columns; ++i) effect.biases[row + i] -= own;
  }
  return effect;
}

Effect effect_of(const EngineRule& rule, const RuleInput& c) {
  EngineScheme engine_scheme{
      .scheme = *c.group.scheme, .prepare = {.length = c.length}, .positions = probed(c.length)};
  engine_scheme.temperature = c.group.temperature;
  rule.change(engine_scheme, c);
  Effect effect;
  if (const auto* const alibi = std::get_if<Alibi>(&engine_scheme.scheme))
    effect = effect_of_bias(engine_scheme, *alibi);
  if (const auto* const rope = std::get_if<Rope>(&engine_scheme.scheme))
    effect = effect_of_rope(engine_scheme, *rope);
  if (engine_scheme.temperature) {
    for (const std::int64_t position : engine_scheme.positions) {
      effect.temperatures.push_back(factor_at(*engine_scheme.temperature, position));
    }
  }
  return effect;
}

void keep_larger(double& largest, double value) {
  if (!(value <= largest)) largest = value;
}

void measure(EngineAnswer& answer, const Effect& effect, const Effect& reference) {
  for (std::size_t i = 0; i < effect.biases.size(); ++i) {
    keep_larger(answer.score, std::fabs(effect.biases[i] - reference.biases[i]));
  }
  for (std::size_t i = 0; i < effect.temperatures.size(); ++i) {
    keep_larger(answer.score, std::fabs(effect.temperatures[i] - reference.temperatures[i]));
  }
  if (effect.rotations.empty()) return;
  // a pair that one of them leaves out is not rotated there
  const std::size_t most = std::max(effect.columns, reference.columns);
  const auto rotation_of = [](const Effect& e, std::size_t token, std::size_t pair) {
    return pair < e.columns ? e.rotations[token * e.columns + pair] : std::complex<double>(e.magnitude, 0);
  };
  const std::size_t tokens = effect.rotations.size() / effect.columns;
  for (std::size_t i = 0; i < tokens * most; ++i) {
    const std::complex<double> one = rotation_of(effect, i / most, i % most),
                               other = rotation_of(reference, i / most, i % most);
    keep_larger(answer.wave, std::max(std::fabs(one.real() - other.real()), std::fabs(one.imag() - other.imag())));
    keep_larger(answer.angle, std::fabs(std::arg(one * std::conj(other))));
  }
  for (std::size_t token = 0; token < tokens; ++token) {
    double difference = 0;
    for (std::size_t i = 0; i < most; ++i) {
      const auto score = [&](const Effect& e) {
        return e.softmax_factor * (rotation_of(e, tokens - 1, i) * std::conj(rotation_of(e, token, i))).real();
      };
      difference += score(effect) - score(reference);
    }
    keep_larger(answer.score, std::fabs(difference) / static_cast<double>(most));
  }
}

// Whether two results differ by more than rounding: a cosine or sine relative to its magnitude, a score relative to
// its two factors, a bias in absolute terms.
bool differ(const EngineAnswer& answer, const Effect& effect, const Effect& reference, double tolerance) {
  if (!effect.is_rotation) return !(answer.score <= tolerance);
  const double size = std::max({1.0, effect.magnitude, reference.magnitude});
  return !(answer.wave <= tolerance * size) || !(answer.score <= 2 * tolerance * size * size);
}

// Whether an engine rejects the whole model because of one of its layers.
bool refuses(std::string_view engine, const Model& model, std::int64_t length) {
  for (const EngineRule& rule : engine_rules()) {
    if (rule.engine != engine || rule.change != nullptr) continue;
    for (const Subject& subject : subjects()) {
      if (subject.name != rule.subject) continue;
      for (const LayerGroup& group : model.groups) {
        if (subject.concerns({model, group, length})) return true;
      }
    }
  }
  return false;
}

std::vector<EngineAnswer> answers_on(const Subject& subject, const RuleInput& c,
                                     std::span<const std::string_view> engines, double tolerance) {
  std::vector<EngineAnswer> answers;
  std::optional<Effect> reference;
  for (const std::string_view engine : engines) {
    for (const EngineRule& rule : engine_rules()) {
      if (rule.subject != subject.name || rule.engine != engine) continue;
      EngineAnswer answer{.engine = engine, .what = rule.what, .source = rule.source};
      answer.is_able = !refuses(engine, c.model, c.length);
      answer.since = rule.since;
      for (const EngineVersion& one : engine_versions()) {
        if (one.engine != engine) continue;
        answer.version = one.version;
        answer.date = one.date;
      }
      if (answer.is_able) {
        const Effect effect = effect_of(rule, c);
        if (!reference) reference = effect;
        measure(answer, effect, *reference);
        answer.differs = differ(answer, effect, *reference, tolerance);
      }
      answers.push_back(answer);
    }
  }
  return answers;
}

void check_engines(std::span<const std::string_view> engines) {
  const std::vector<std::string_view> known = known_engines();
  for (const std::string_view engine : engines) {
    if (std::find(known.begin(), known.end(), engine) == known.end()) {
      raise(fmt::format("unknown engine '{}' (one of {})", excerpt(engine), fmt::join(known, ", ")));
    }
    if (std::count(engines.begin(), engines.end(), engine) > 1) {
      raise(fmt::format("engine '{}' is named twice", engine));
    }
  }
  if (engines.size() < 2) raise("at least two engines are needed");
}

}  // namespace

bool EngineTopic::is_compared() const {
  return std::count_if(engines.begin(), engines.end(), [](const EngineAnswer& one) { return one.is_able; }) > 1;
}

std::int64_t EngineComparison::compared() const {
  return std::count_if(topics.begin(), topics.end(), [](const EngineTopic& topic) { return topic.is_compared(); });
}

bool EngineComparison::agrees() const {
  return compared() > 0 &&
         std::none_of(topics.begin(), topics.end(), [](const EngineTopic& topic) { return topic.differs; });
}

std::span<const std::string_view> default_engines() noexcept { return kDefaultEngines; }

std::vector<std::string_view> known_engines() {
  std::vector<std::string_view> names;
  for (const EngineRule& rule : engine_rules()) {
    if (std::find(names.begin(), names.end(), rule.engine) == names.end()) names.push_back(rule.engine);
  }
  return names;
}

namespace {

// 2026, 2026-05 or 2026-05-19.
bool is_date(std::string_view text) {
  if (text.size() != 4 && text.size() != 7 && text.size() != 10) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_bar = i == 4 || i == 7;
    if (is_bar ? text[i] != '-' : text[i] < '0' || text[i] > '9') return false;
  }
  return true;
}

bool concerns_any(const Subject& subject, const Model& model) {
  return std::any_of(model.groups.begin(), model.groups.end(), [&](const LayerGroup& group) {
    return subject.concerns({model, group, kUsualLength});
  });
}

}  // namespace

std::vector<EngineChange> engine_changes(std::string_view since, const Model* model) {
  if (!is_date(since)) raise(fmt::format("the day must look like 2026-05-19 but is '{}'", excerpt(since)));
  std::vector<EngineChange> changes;
  for (const Subject& subject : subjects()) {
    if (model != nullptr && !concerns_any(subject, *model)) continue;
    for (const EngineRule& rule : engine_rules()) {
      if (rule.subject != subject.name || rule.since.empty() || rule.since < since) continue;
      changes.push_back({rule.since, rule.engine, subject.name, subject.title, rule.what, rule.before, rule.source});
    }
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const EngineChange& one, const EngineChange& other) { return one.date > other.date; });
  return changes;
}

EngineComparison compare_engines(const Model& model, const CompareOptions& options) {
  const std::span<const std::string_view> engines = options.engines.empty() ? default_engines() : options.engines;
  check_engines(engines);
  if (options.length < 0 || options.length > kLongest) {
    raise(fmt::format("the length must be from 1 to 2^40 but is {}", options.length));
  }
  EngineComparison result;
  result.length = options.length > 0
                      ? options.length
                      : std::clamp<std::int64_t>(model.usable_length.value_or(kUsualLength), 1, kLongest);
  for (const LayerGroup& group : model.groups) {
    const RuleInput c{model, group, result.length};
    for (const Subject& subject : subjects()) {
      if (!subject.concerns(c)) continue;
      if (!subject.about.empty() && std::find(engines.begin(), engines.end(), subject.about) == engines.end())
        continue;
      EngineTopic topic{.name = subject.name, .title = subject.title, .sentence = subject.sentence};
      topic.is_rotation =
          std::holds_alternative<Rope>(*group.scheme) && subject.name != std::string_view("temperature");
      topic.layers = layer_ranges(group.layers);
      topic.layer_type = group.layer_type;
      topic.engines = answers_on(subject, c, engines, options.tolerance);
      if (topic.engines.size() < 2) continue;
      topic.differs = std::any_of(topic.engines.begin(), topic.engines.end(),
                                  [](const EngineAnswer& answer) { return answer.differs; });
      result.topics.push_back(std::move(topic));
    }
  }
  return result;
}

}  // namespace posenc
