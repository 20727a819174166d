// Exercises from content/exercises: draws variables, evaluates formulas, fills in texts.
#include "lessons/exercise_content.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "lessons/content_json.h"
#include "lessons/formula_names.h"
#include "posenc/content.h"

namespace posenc::lessons {
namespace {

// Builds one exercise.
class Maker {
 public:
  Maker(const Json& text, std::string_view where, Random& random, const ExerciseVariables& fixed)
      : text_(text), where_(where), random_(random), fixed_(fixed) {}

  Draft draft() {
    draw();
    make_schemes();
    Draft result;
    result.answer = number_of(text_, "answer");
    result.whole = text_.find("whole") != nullptr;
    result.decimals = decimals_of(result.answer);
    names_.set("answer", result.answer);
    names_.set("decimals", static_cast<double>(result.decimals));
    names_.set("asked", asked_for(result.decimals));
    for (const Json& name : list_of(text_, "given", where_)) {
      const auto* const given = name.as<std::string>();
      if (given == nullptr) complain(where_, "'given' lists names");
      result.given.emplace_back(*given, evaluate_formula(*given, names_));
    }
    result.prompt = filled("prompt");
    result.hint = filled("hint");
    result.working = filled("working");
    if (text_.find("command") != nullptr) result.command = filled("command");
    add_mistakes(list_of(text_, "mistakes", where_), "", result.mistakes);
    return result;
  }

 private:
  double evaluated(const Json& value) const {
    if (const auto* const formula = value.as<std::string>()) return evaluate_formula(*formula, names_);
    if (const auto* const whole = value.as<std::int64_t>()) return static_cast<double>(*whole);
    if (const auto* const number = value.as<double>()) return *number;
    complain(where_, fmt::format("{} is neither a number nor a formula", dump_json(value)));
  }

  double number_of(const Json& json, std::string_view name) const {
    const Json* const found = json.find(name);
    if (found == nullptr) complain(where_, fmt::format("'{}' is missing", name));
    return evaluated(*found);
  }

  bool applies(const Json& entry) const {
    const Json* const when = entry.find("when");
    return when == nullptr || evaluated(*when) != 0;
  }

  // The first entry of a list that applies, or the value itself if it is not a list.
  const Json& chosen(const Json& value, std::string_view name) const {
    const auto* const list = value.as<Json::Array>();
    if (list == nullptr) return value;
    const auto found = std::find_if(list->begin(), list->end(), [&](const Json& one) { return applies(one); });
    if (found == list->end()) complain(where_, fmt::format("no case of '{}' applies", name));
    return *found;
  }

  // A random integer from `least` to `most`, inclusive.
  double between(double least, double most) {
    if (!(least <= most)) complain(where_, fmt::format("there is nothing from {} to {}", least, most));
    return least + static_cast<double>(random_.below(static_cast<std::int64_t>(most - least) + 1));
  }

  double drawn(const Json& rule) {
    if (rule.as<Json::Object>() == nullptr) return evaluated(rule);
    if (rule.find("one_of") != nullptr) {
      const Json::Array& list = list_of(rule, "one_of", where_);
      if (list.empty()) complain(where_, "'one_of' is empty");
      return evaluated(list[random_.below(static_cast<std::int64_t>(list.size()))]);
    }
    if (const Json* const value = rule.find("value")) return evaluated(*value);
    const double unit =
        rule.find("decimals") == nullptr ? 1 : std::round(std::pow(10.0, number_of(rule, "decimals")));
    return between(number_of(rule, "from") * unit, number_of(rule, "to") * unit) / unit;
  }

  void draw() {
    const auto* const list = text_.find<Json::Object>("draw");
    if (list == nullptr) complain(where_, "'draw' must be an object");
    std::size_t met = 0;
    for (const auto& entry : *list) {
      const auto given =
          std::find_if(fixed_.begin(), fixed_.end(), [&](const auto& one) { return one.first == entry.first; });
      if (given != fixed_.end()) ++met;
      names_.set(entry.first, given != fixed_.end() ? given->second : drawn(chosen(entry.second, entry.first)));
    }
    if (met != fixed_.size()) complain(where_, "a variable is given that is not there");
  }

  // A scheme whose fields may be formulas: {"scheme": "rope", "dims": "=dims"}.
  Json with_values(const Json& value) const {
    if (const auto* const text = value.as<std::string>()) {
      if (!text->starts_with('=')) return value;
      const double number = evaluate_formula(std::string_view(*text).substr(1), names_);
      return number == std::round(number) ? Json(static_cast<std::int64_t>(number)) : Json(number);
    }
    if (const auto* const list = value.as<Json::Array>()) {
      Json::Array result;
      for (const Json& one : *list) result.push_back(with_values(one));
      return result;
    }
    const auto* const object = value.as<Json::Object>();
    if (object == nullptr) return value;
    Json::Object result;
    for (const auto& [key, one] : *object) result.emplace_back(key, with_values(one));
    return result;
  }

  void make_schemes() {
    const Json* const schemes = text_.find("schemes");
    if (schemes == nullptr) return;
    const auto* const list = schemes->as<Json::Object>();
    if (list == nullptr) complain(where_, "'schemes' must be an object");
    for (const auto& [name, entry] : *list) {
      const Json* const scheme = entry.find("scheme");
      if (scheme == nullptr) complain(where_, fmt::format("'{}' has no scheme", name));
      const std::int64_t length =
          entry.find("length") == nullptr ? 0 : static_cast<std::int64_t>(number_of(entry, "length"));
      names_.set_scheme(name, {scheme_from_json(dump_json(with_values(*scheme))), length});
    }
  }

  // "decimals", or more if "digits" significant digits need them; 0 for "whole" answers.
  int decimals_of(double answer) const {
    if (text_.find("whole") != nullptr) return 0;
    int decimals = text_.find("decimals") == nullptr ? 0 : static_cast<int>(number_of(text_, "decimals"));
    if (text_.find("digits") == nullptr) return decimals;
    const int digits = static_cast<int>(number_of(text_, "digits"));
    const int before = answer == 0 ? -1 : static_cast<int>(std::floor(std::log10(std::fabs(answer))));
    return std::max({decimals, 0, digits - 1 - before});
  }

  static std::string asked_for(int decimals) {
    if (decimals == 0) return "to the nearest whole number";
    return fmt::format("to {} decimal{}", decimals, decimals == 1 ? "" : "s");
  }

  std::string filled(std::string_view name) const {
    const Json* const found = text_.find(name);
    if (found == nullptr) complain(where_, fmt::format("'{}' is missing", name));
    const Json& one = chosen(*found, name);
    const auto* const text = one.as<std::string>();
    return fill_template(text != nullptr ? *text : text_of(one, "text", where_), names_);
  }

  // If `as` is not empty, it is a formula that computes the final value from `it`, the value of a mistake in an
  // intermediate step.
  void add_mistakes(const Json::Array& list, const std::string& as, std::vector<Mistake>& mistakes) {
    for (const Json& entry : list) {
      if (!applies(entry)) continue;
      if (entry.find("those_of") != nullptr) {
        add_mistakes(mistakes_of(text_of(entry, "those_of", where_)), text_of(entry, "as", where_), mistakes);
        continue;
      }
      Mistake mistake;
      mistake.name = fill_template(text_of(entry, "name", where_), names_);
      mistake.because = fill_template(text_of(entry, "because", where_), names_);
      mistake.value = number_of(entry, "value");
      if (!as.empty()) {
        names_.set("it", mistake.value);
        mistake.value = evaluate_formula(as, names_);
      }
      mistakes.push_back(std::move(mistake));
    }
  }

  const Json::Array& mistakes_of(std::string_view kind) const {
    for (const ExerciseSource& source : exercise_sources()) {
      if (source.kind.name == kind) return list_of(*source.text, "mistakes", source.where);
    }
    complain(where_, fmt::format("there is no kind '{}'", kind));
  }

  const Json& text_;
  std::string_view where_;
  Random& random_;
  const ExerciseVariables& fixed_;
  FormulaNames names_;
};

// The files are kept in memory, because kinds and entries refer to their texts.
struct Loaded {
  std::vector<std::unique_ptr<const Json>> files;
  std::vector<ExerciseSource> sources;
  std::vector<std::unique_ptr<const std::string>> names;

  std::string_view kept(std::string text) {
    names.push_back(std::make_unique<const std::string>(std::move(text)));
    return *names.back();
  }
};

// A seed selects among the kinds by their place, so the order of these never changes, whatever the order of teaching;
// topics that get exercises later come after them.
std::vector<std::string> topics_by_seed() {
  std::vector<std::string> names = {"order", "sinusoidal", "learned", "rope", "scalings", "biases"};
  for (const std::string& topic : topics()) {
    if (std::find(names.begin(), names.end(), topic) == names.end()) names.push_back(topic);
  }
  return names;
}

Loaded load() {
  Loaded loaded;
  for (const std::string& topic : topics_by_seed()) {
    const std::string file = fmt::format("exercises/{}.json", topic);
    const auto files = content_files();
    const bool is_there =
        std::any_of(files.begin(), files.end(), [&](const ContentFile& one) { return one.name == file; });
    if (!is_there) continue;  // not every topic has exercises
    loaded.files.push_back(std::make_unique<const Json>(parse_json(content(file))));
    const std::string_view topic_name = loaded.kept(topic);
    for (const Json& entry : list_of(*loaded.files.back(), "exercises", file)) {
      const std::string_view name = loaded.kept(text_of(entry, "kind", file));
      const std::string where = fmt::format("{}: {}", file, name);
      loaded.sources.push_back({{name, loaded.kept(text_of(entry, "title", where)), topic_name}, where, &entry});
    }
  }
  return loaded;
}

}  // namespace

const std::vector<ExerciseSource>& exercise_sources() {
  static const Loaded kLoaded = load();
  return kLoaded.sources;
}

Draft drafted(const ExerciseSource& source, Random& random, const ExerciseVariables& fixed) {
  const Json* text = source.text;
  if (text->find("variants") != nullptr) {
    const Json::Array& variants = list_of(*text, "variants", source.where);
    if (variants.empty()) complain(source.where, "'variants' is empty");
    text = &variants[random.below(static_cast<std::int64_t>(variants.size()))];
  }
  return Maker(*text, source.where, random, fixed).draft();
}

}  // namespace posenc::lessons
