#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "cli/flags/model_file.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/json.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

// 131072 as 131,072: lengths are read more often than typed here.
std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string six_digits(double value) {
  const bool is_whole = value == std::floor(value) && std::fabs(value) < 1e15;
  return is_whole ? grouped(static_cast<std::int64_t>(value)) : fmt::format("{:.8g}", value);
}

// What a group becomes at the length it was trained with; empty where that needs a table, or is not in this build.
struct Prepared {
  double magnitude = 1.0;
  std::vector<double> frequencies;  // radians per position
};

Prepared prepared(const LayerGroup& group, const Model& model) {
  Prepared result;
  if (!group.scheme || std::holds_alternative<Learned>(*group.scheme)) return result;
  const Situation now{.length = std::max<std::int64_t>(model.trained_length.value_or(1), 1)};
  if (const auto* const rope = std::get_if<Rope>(&*group.scheme)) {
    const Rotation form = prepare(*rope, now);
    result.magnitude = form.magnitude;
    for (const Frequency& frequency : form.frequencies) result.frequencies.push_back(radians_of(frequency));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&*group.scheme)) {
    const Addition form = prepare(*waves, now);
    for (const Wave& wave : std::get<Waves>(form.source).waves) {
      result.frequencies.push_back(radians_of(wave.frequency));
    }
  }
  return result;
}

Json layers_json(const LayerGroup& group, const Model& model) {
  const Prepared form = prepared(group, model);
  Json scheme = Json::Object{{"scheme", group.scheme_name}, {"available", false}};
  if (group.scheme) {
    Json::Value value = parse_json(to_json(*group.scheme)).take();
    auto object = std::get<Json::Object>(std::move(value));
    if (std::holds_alternative<Rope>(*group.scheme)) object.emplace_back("magnitude", form.magnitude);
    scheme = std::move(object);
  }
  Json::Array frequencies(form.frequencies.begin(), form.frequencies.end());
  Json::Object object{{"layers", group.layers.empty() ? Json(nullptr) : Json(layer_ranges(group.layers))},
                      {"layer_type", group.layer_type.empty() ? Json(nullptr) : Json(group.layer_type)},
                      {"scheme", std::move(scheme)},
                      {"frequencies", std::move(frequencies)},
                      {"softmax_factor", group.softmax_factor},
                      {"unscaled", group.is_unscaled},
                      {"first_position", group.first_position}};
  return object;
}

Json list_json(const std::vector<std::string>& texts) {
  Json::Array list;
  for (const std::string& text : texts) list.emplace_back(text);
  return list;
}

std::string as_json(const Model& model, const std::string& path) {
  const auto length = [](std::optional<std::int64_t> value) { return value ? Json(*value) : Json(nullptr); };
  Json::Array layers;
  for (const LayerGroup& group : model.groups) layers.push_back(layers_json(group, model));
  return dump_json(Json::Object{{"source", path},
                                {"model_type", model.model_type},
                                {"layers", std::move(layers)},
                                {"trained_length", length(model.trained_length)},
                                {"usable_length", length(model.usable_length)},
                                {"warnings", list_json(model.warnings)},
                                {"assumed", list_json(model.assumed)},
                                {"notes", list_json(model.notes)}},
                   2) +
         "\n";
}

using FactRows = std::vector<std::pair<std::string, std::string>>;

std::string pairs_text(const Rope& rope) {
  const std::int64_t half = rope.dims / 2;
  switch (rope.layout) {
    case PairLayout::kHalves:
      return fmt::format("halves: features i and i + {}", half);
    case PairLayout::kInterleaved:
      return "interleaved: features 2i and 2i + 1";
    case PairLayout::kInterleavedToHalves:
      return fmt::format("interleaved-to-halves: read at 2i and 2i + 1, written to i and i + {}", half);
    default:
      return fmt::format("halves-to-interleaved: read at i and i + {}, written to 2i and 2i + 1", half);
  }
}

std::string scaling_text(const RopeScaling& scaling) {
  const Rope rope{.scaling = scaling};
  const Json json = parse_json(to_json(Scheme(rope)));
  std::string text;
  for (const auto& [key, value] : *json.find("scaling")->as<Json::Object>()) {
    if (value.as<std::nullptr_t>() != nullptr) continue;
    if (key == "type") {
      text = *value.as<std::string>();
    } else if (const auto* const list = value.as<Json::Array>()) {
      text += fmt::format(", {} for {} pairs", key, list->size());
    } else if (const auto* const number = value.as<double>()) {
      text += fmt::format(", {} {}", key, six_digits(*number));
    } else {
      text += fmt::format(", {} {}", key, dump_json(value));
    }
  }
  return text;
}

std::string waves_text(const Prepared& form, const Model& model) {
  double shortest = std::numeric_limits<double>::infinity(), longest = 0;
  std::int64_t unfinished = 0, still = 0;
  for (const double frequency : form.frequencies) {
    if (frequency == 0) {
      ++still;
      continue;
    }
    const double wavelength = 2 * std::numbers::pi / std::fabs(frequency);
    shortest = std::min(shortest, wavelength);
    longest = std::max(longest, wavelength);
    if (model.trained_length && wavelength > static_cast<double>(*model.trained_length)) ++unfinished;
  }
  std::string text = fmt::format("one turn takes {:.3g} to {} positions", shortest,
                                 grouped(static_cast<std::int64_t>(std::llround(longest))));
  if (model.trained_length) {
    const std::string length = grouped(*model.trained_length);
    text += unfinished == 0
                ? fmt::format("; all finish one in {}", length)
                : fmt::format("; {} of {} pairs never finish one in {}", unfinished, form.frequencies.size(), length);
  }
  if (still > 0) text += fmt::format("; {} stand still", still);
  return text;
}

void add_rope_rows(FactRows& rows, const Rope& rope, const Prepared& form, const Model& model) {
  rows.emplace_back("pairs", pairs_text(rope));
  rows.emplace_back("turns", rope.first_dim < 0
                                 ? fmt::format("the last {} features of a head", rope.dims)
                                 : fmt::format("{} features of a head, from feature {}", rope.dims, rope.first_dim));
  if (rope.sign < 0) rows.emplace_back("direction", "clockwise, unlike other families");
  rows.emplace_back("base", six_digits(rope.base));
  if (!rope.sections.empty()) {
    std::string text;
    for (const std::int64_t section : rope.sections) text += fmt::format("{}{}", text.empty() ? "" : " + ", section);
    rows.emplace_back("axes", fmt::format("{} pairs, {}", text, choice_name(rope.section_order)));
  }
  rows.emplace_back("scaling", scaling_text(rope.scaling));
  rows.emplace_back("magnitude", six_digits(form.magnitude));
  rows.emplace_back("waves", waves_text(form, model));
}

FactRows rows_of(const LayerGroup& group, const Model& model) {
  FactRows rows;
  if (!group.scheme) {
    rows.emplace_back("scheme", fmt::format("{}, which this build cannot make", group.scheme_name));
    return rows;
  }
  const Prepared form = prepared(group, model);
  if (const auto* const rope = std::get_if<Rope>(&*group.scheme)) {
    rows.emplace_back("scheme", "rope");
    add_rope_rows(rows, *rope, form, model);
  } else if (const auto* const learned = std::get_if<Learned>(&*group.scheme)) {
    rows.emplace_back("scheme", fmt::format("learned, {} rows of {}", grouped(learned->rows), learned->width));
    if (learned->offset > 0) rows.emplace_back("offset", fmt::format("position 0 is row {}", learned->offset));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&*group.scheme)) {
    rows.emplace_back("scheme", fmt::format("sinusoidal, width {}", waves->width));
    rows.emplace_back("columns", std::string(choice_name(waves->layout)));
    rows.emplace_back("spacing", std::string(choice_name(waves->spacing)));
    rows.emplace_back("waves", waves_text(form, model));
  } else if (std::holds_alternative<None>(*group.scheme)) {
    rows.emplace_back("scheme", "none: these layers know no position");
  } else {
    rows.emplace_back("scheme", to_json(*group.scheme));
  }
  if (group.first_position > 0) rows.emplace_back("first token", fmt::format("at position {}", group.first_position));
  if (group.softmax_factor != 1.0) {
    rows.emplace_back("softmax", fmt::format("scale times {}", six_digits(group.softmax_factor)));
  }
  if (group.is_unscaled) rows.emplace_back("scores", "not divided by the root of a head's features");
  return rows;
}

std::string lengths_text(const Model& model) {
  if (!model.trained_length) return "length not given";
  if (model.usable_length == model.trained_length) return fmt::format("{} positions", grouped(*model.trained_length));
  return fmt::format("trained on {} positions, stretched to {}", grouped(*model.trained_length),
                     grouped(model.usable_length.value_or(0)));
}

std::string as_text(const Model& model) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), 100);
  std::string text = fmt::format("{}  {}\n", bold(one_line(model.model_type), colour), lengths_text(model));
  for (const LayerGroup& group : model.groups) {
    const std::string which = group.layers.empty() ? "layers" : fmt::format("layers {}", layer_ranges(group.layers));
    const std::string type = group.layer_type.empty() ? "" : "  " + dim(one_line(group.layer_type), colour);
    text += fmt::format("\n{}{}\n", bold(which, colour), type);
    for (const auto& [name, value] : rows_of(group, model)) {
      std::string left = name;
      for (const std::string& line : wrap(value, columns - 15)) {
        text += fmt::format("  {}  {}\n", dim(pad_right(left, 11), colour), line);
        left.clear();
      }
    }
  }
  const auto add_list = [&](std::string_view title, const std::vector<std::string>& list) {
    if (list.empty()) return;
    text += fmt::format("\n{}\n", bold(title, colour));
    for (const std::string& one : list) {
      std::string_view bullet = "- ";
      for (const std::string& line : wrap(one_line(one), columns - 4)) {
        text += fmt::format("  {}{}\n", bullet, line);
        bullet = "  ";
      }
    }
  };
  add_list("Warnings", model.warnings);
  add_list("Assumed", model.assumed);
  add_list("Also", model.notes);
  return text;
}

}  // namespace

Verb inspect_verb(Command program) {
  Verb verb;
  verb.name = "inspect";
  verb.summary = "what a model's own files say of position";
  verb.usage = "PATH [--json]";
  verb.details =
      "PATH is a config.json of Hugging Face, a folder that holds one, or a .gguf file. Says which scheme is on "
      "which "
      "layers, with layout, base, scaling, magnitude and lengths; which keys are ignored, renamed or contradict each "
      "other; and what was assumed because the file does not say it. A model_type or rope_type that is unknown is an "
      "error, never a guess.";
  verb.examples =
      "posenc inspect config.json\n"
      "posenc inspect model.gguf\n"
      "posenc inspect ./my-model --json";
  verb.command = program.add_subcommand(verb.name);
  struct Flags {
    std::string path;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  verb.command.add_option("PATH", flags->path);
  verb.command.add_flag("--json", flags->json, "one JSON document");
  verb.run = [flags, verb] {
    refuse_leftovers(verb.command);
    if (flags->path.empty()) refuse("inspect: the model is missing (posenc inspect config.json)");
    const Model model = model_from(flags->path);
    print(flags->json ? as_json(model, flags->path) : as_text(model));
    return kDone;
  };
  return verb;
}

}  // namespace posenc::cli
