#include <fmt/format.h>
#include <fmt/ranges.h>
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
#include "posenc/compare.h"
#include "posenc/json.h"
#include "posenc/report_json.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

// 131072 as 131,072: lengths here are read more often than typed.
std::string grouped(std::int64_t value) {
  std::string text = std::to_string(value);
  for (std::ptrdiff_t at = std::ssize(text) - 3; at > 0; at -= 3) text.insert(at, ",");
  return text;
}

std::string six_digits(double value) {
  const bool is_whole = value == std::floor(value) && std::fabs(value) < 1e15;
  return is_whole ? grouped(static_cast<std::int64_t>(value)) : fmt::format("{:.8g}", value);
}

// A model, and what else was requested.
struct Inspection {
  Model model;
  std::string path;
  std::vector<PositionTable> tables = {};
  std::string engine = {};
  EngineComparison treatment = {};  // of the engine, relative to transformers
};

Json tables_json(const std::vector<PositionTable>& tables) {
  Json::Array list;
  for (const PositionTable& table : tables) {
    Json::Array shape(table.shape.begin(), table.shape.end());
    list.emplace_back(Json::Object{{"name", table.name},
                                   {"file", table.file},
                                   {"shape", table.shape.empty() ? Json(nullptr) : Json(std::move(shape))}});
  }
  return list;
}

// The answer for the requested engine; nullptr if the topic has none.
const EngineAnswer* answer_of(const EngineTopic& topic, std::string_view engine) {
  const auto at = std::find_if(topic.engines.begin(), topic.engines.end(),
                               [&](const EngineAnswer& one) { return one.engine == engine; });
  return at == topic.engines.end() ? nullptr : &*at;
}

Json engine_json(const Inspection& found) {
  Json::Array topics;
  for (const EngineTopic& topic : found.treatment.topics) {
    const EngineAnswer* const one = answer_of(topic, found.engine);
    if (one == nullptr) continue;
    topics.emplace_back(Json::Object{{"topic", topic.name},
                                     {"layers", topic.layers.empty() ? Json(nullptr) : Json(topic.layers)},
                                     {"what", one->what},
                                     {"able", one->is_able},
                                     {"differs", one->differs},
                                     {"version", one->version},
                                     {"date", one->date},
                                     {"source", one->source}});
  }
  return Json::Object{{"engine", found.engine}, {"topics", std::move(topics)}};
}

std::string as_json(const Inspection& found) {
  Json::Object object{{"source", found.path}};
  Json::Value model = json_of(found.model).take();
  for (auto& member : std::get<Json::Object>(model)) object.push_back(std::move(member));
  if (!found.tables.empty()) object.emplace_back("tables", tables_json(found.tables));
  if (!found.engine.empty()) object.emplace_back("engine", engine_json(found));
  return dump_json(std::move(object), 2) + "\n";
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

// Its name, which has the key `named`, and its fields; `long_list` is what a list of many numbers is said to be.
std::string fields_text(const Json::Object& fields, std::string_view named,
                        fmt::format_string<const std::string&, std::size_t> long_list) {
  constexpr std::size_t kShort = 4;
  const auto number_text = [](const Json& json) {
    const auto* const number = json.as<double>();
    return number == nullptr ? dump_json(json) : six_digits(*number);
  };
  std::string text;
  for (const auto& [key, value] : fields) {
    if (value.as<std::nullptr_t>() != nullptr) continue;
    if (key == named) {
      text = *value.as<std::string>();
    } else if (const auto* const list = value.as<Json::Array>()) {
      if (list->size() > kShort) {
        text += ", " + fmt::format(long_list, key, list->size());
        continue;
      }
      std::vector<std::string> values;
      for (const Json& one : *list) values.push_back(number_text(one));
      text += fmt::format(", {} {}", key, fmt::join(values, ","));
    } else if (const auto* const word = value.as<std::string>()) {
      text += fmt::format(", {} {}", key, *word);
    } else {
      text += fmt::format(", {} {}", key, number_text(value));
    }
  }
  return text;
}

std::string scaling_text(const RopeScaling& scaling) {
  const Rope rope{.scaling = scaling};
  const Json json = json_of(rope);
  return fields_text(*json.find<Json::Object>("scaling"), "type", "{} for {} pairs");
}

std::string waves_text(const TrainedWaves& form, std::optional<std::int64_t> trained_length) {
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
    if (trained_length && wavelength > static_cast<double>(*trained_length)) ++unfinished;
  }
  std::string text =
      fmt::format("{:.3g} to {} positions", shortest, grouped(static_cast<std::int64_t>(std::llround(longest))));
  if (trained_length) {
    const std::string length = grouped(*trained_length);
    text += unfinished == 0 ? fmt::format("; none exceeds the trained length {}", length)
                            : fmt::format("; {} of {} pairs exceed the trained length {}", unfinished,
                                          form.frequencies.size(), length);
  }
  if (still > 0) text += fmt::format("; {} {} not rotate", still, still == 1 ? "pair does" : "pairs do");
  return text;
}

void add_rope_rows(FactRows& rows, const Rope& rope, const TrainedWaves& form,
                   std::optional<std::int64_t> trained_length) {
  rows.emplace_back("pairs", pairs_text(rope));
  rows.emplace_back("rotary dims", rope.first_dim < 0
                                       ? fmt::format("{} of each head, the last ones", rope.dims)
                                       : fmt::format("{} of each head, from feature {}", rope.dims, rope.first_dim));
  if (rope.sign < 0) rows.emplace_back("direction", "clockwise, unlike most families");
  rows.emplace_back("base", six_digits(rope.base));
  if (!rope.sections.empty()) {
    std::string text;
    for (const std::int64_t section : rope.sections) text += fmt::format("{}{}", text.empty() ? "" : " + ", section);
    rows.emplace_back("axes", fmt::format("{} pairs, {}", text, choice_name(rope.section_order)));
  }
  rows.emplace_back("scaling", scaling_text(*rope.scaling));
  rows.emplace_back("magnitude", six_digits(form.magnitude));
  rows.emplace_back("wavelengths", waves_text(form, trained_length));
}

// What attention does in these layers beside position.
void add_attention_rows(FactRows& rows, const LayerGroup& group) {
  if (group.is_causal) rows.emplace_back("mask", *group.is_causal ? "causal" : "bidirectional");
  if (group.window) {
    const bool is_causal = group.is_causal.value_or(true);
    rows.emplace_back("window", is_causal ? fmt::format("{} keys", grouped(*group.window))
                                          : fmt::format("keys up to {} tokens away", grouped(*group.window - 1)));
  }
  if (group.chunk) rows.emplace_back("chunk", fmt::format("keys of the same chunk of {}", grouped(*group.chunk)));
  if (group.scale) rows.emplace_back("scale", six_digits(*group.scale));
  if (group.softcap > 0) {
    rows.emplace_back("softcap", fmt::format("scores become {0} tanh(score / {0})", six_digits(group.softcap)));
  }
  if (group.has_sinks) rows.emplace_back("sinks", "a trained logit per head joins each softmax");
  if (group.temperature) {
    rows.emplace_back("temperature", fmt::format("queries times {}", to_string(*group.temperature)));
  }
  if (!group.token_mixer.empty()) rows.emplace_back("attention", fmt::format("none ({} instead)", group.token_mixer));
  if (!group.other_attention.empty()) {
    rows.emplace_back("attention", fmt::format("not computed: {}", group.other_attention));
  }
}

FactRows rows_of(const LayerGroup& group, const Model& model) {
  FactRows rows;
  if (!group.scheme) {
    rows.emplace_back("scheme", fmt::format("{}, not computed", group.scheme_name));
    rows.emplace_back("formula", group.formula);
    add_attention_rows(rows, group);
    return rows;
  }
  const std::optional<std::int64_t> trained_length =
      group.trained_length ? group.trained_length : model.trained_length;
  const TrainedWaves form = trained_waves(group, trained_length);
  if (const auto* const rope = std::get_if<Rope>(&*group.scheme)) {
    rows.emplace_back("scheme", "rope");
    add_rope_rows(rows, *rope, form, trained_length);
  } else if (const auto* const learned = std::get_if<Learned>(&*group.scheme)) {
    rows.emplace_back("scheme", fmt::format("learned, {} rows of {}", grouped(learned->rows), learned->width));
    if (learned->offset > 0) rows.emplace_back("offset", fmt::format("position 0 is row {}", learned->offset));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&*group.scheme)) {
    rows.emplace_back("scheme", fmt::format("sinusoidal, width {}", waves->width));
    rows.emplace_back("columns", std::string(choice_name(waves->layout)));
    rows.emplace_back("spacing", std::string(choice_name(waves->spacing)));
    if (waves->turns) {
      rows.emplace_back("coordinates", fmt::format("0 to 1 on {} axes; 1 is a turn of the first wave", waves->axes));
    } else {
      rows.emplace_back("wavelengths", waves_text(form, trained_length));
    }
  } else if (std::holds_alternative<None>(*group.scheme)) {
    rows.emplace_back("scheme", "none: no positional encoding in these layers");
  } else {
    const Json json = json_of(*group.scheme);
    rows.emplace_back("scheme", fields_text(*json.as<Json::Object>(), "scheme", "{} of {} numbers"));
  }
  if (group.first_position > 0) rows.emplace_back("first token", fmt::format("at position {}", group.first_position));
  add_attention_rows(rows, group);
  if (form.softmax_factor != 1.0) {
    rows.emplace_back("softmax", fmt::format("scale times {}", six_digits(form.softmax_factor)));
  }
  if (group.is_unscaled) rows.emplace_back("scores", "not divided by sqrt(features per head)");
  return rows;
}

std::string lengths_text(const Model& model) {
  if (!model.trained_length) return "length not given";
  if (model.usable_length == model.trained_length) return fmt::format("{} positions", grouped(*model.trained_length));
  return fmt::format("trained on {} positions, extended to {}", grouped(*model.trained_length),
                     grouped(model.usable_length.value_or(0)));
}

void add_groups(std::string& text, const std::vector<LayerGroup>& groups, const Model& model,
                const std::string& part) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), 100);
  for (const LayerGroup& group : groups) {
    const std::string which =
        part + (group.layers.empty() ? "layers" : fmt::format("layers {}", layer_ranges(group.layers)));
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
}

std::vector<std::string> engine_lines(const Inspection& found) {
  std::vector<std::string> lines;
  for (const EngineTopic& topic : found.treatment.topics) {
    const EngineAnswer* const one = answer_of(topic, found.engine);
    if (one == nullptr) continue;
    const std::string_view verdict = !one->is_able  ? " (refuses such models)"
                                     : one->differs ? " (differs from hf)"
                                                    : "";
    lines.push_back(fmt::format("{}{}{}: {}{}", topic.title, topic.layers.empty() ? "" : ", layers ", topic.layers,
                                one->what, verdict));
  }
  if (lines.empty()) lines.push_back("no known difference from transformers for this model");
  return lines;
}

std::string as_text(const Inspection& found) {
  const Model& model = found.model;
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), 100);
  std::string text = fmt::format("{}  {}{}\n", bold(one_line(model.model_type), colour), lengths_text(model),
                                 model.is_assumed ? "  (assumed: see below)" : "");
  add_groups(text, model.groups, model, "");
  for (const ModelPart& part : model.parts) {
    Model alone;
    alone.trained_length = part.trained_length;
    text += fmt::format("\n{}  {}\n", bold(fmt::format("Part {}", one_line(part.name)), colour),
                        dim(one_line(part.model_type), colour));
    add_groups(text, part.groups, alone, "");
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
  if (!found.engine.empty()) add_list(fmt::format("In {}", found.engine), engine_lines(found));
  std::vector<std::string> tables;
  for (const PositionTable& table : found.tables) {
    tables.push_back(fmt::format(
        "{}, {} ({})", table.name,
        table.shape.empty() ? "shape not read" : fmt::format("{}", fmt::join(table.shape, " x ")), table.file));
  }
  add_list("Tables", tables);
  add_list("Warnings", model.warnings);
  add_list("Assumed", model.assumed);
  add_list("Also", model.notes);
  return text;
}

}  // namespace

Verb inspect_verb(Command program) {
  Verb verb;
  verb.name = "inspect";
  verb.summary = "show how a model encodes position, from its config or GGUF";
  verb.usage = "PATH [--engine NAME] [--json]";
  verb.details =
      "PATH is a config.json of Hugging Face, a params.json, a folder that holds one, or a .gguf file. Shows which scheme is on which "
      "layers of every part of the model, with layout, base, scaling, magnitude, window, mask and lengths; which keys "
      "are ignored, renamed or contradict each other; and what was assumed because the file does not say it. A key "
      "that the file omits has its class's default in transformers 5.16. For a folder, also lists the tables in "
      "model.safetensors.index.json or model.safetensors and warns if they contradict the config. With --engine, also "
      "shows what that engine would do. An unknown model_type is rejected, unless the file has RoPE's keys: then it is "
      "read like most RoPE families and marked as assumed.";
  verb.examples =
      "posenc inspect config.json\n"
      "posenc inspect model.gguf\n"
      "posenc inspect config.json --engine vllm\n"
      "posenc inspect ./my-model --json";
  verb.command = program.add_subcommand(verb.name);
  struct Flags {
    std::string path, engine;
    bool json = false;
  };
  auto flags = std::make_shared<Flags>();
  verb.command.add_option("PATH", flags->path);
  verb.command
      .add_option("--engine", flags->engine,
                  fmt::format("show what this engine would do: {}", fmt::join(known_engines(), ", ")))
      .type_name("NAME")
      .choices(known_engines());
  verb.command.add_flag("--json", flags->json, "one JSON document");
  verb.run = [flags] {
    if (flags->path.empty()) refuse("inspect: the model is missing (posenc inspect config.json)");
    Inspection found{model_from(flags->path), flags->path};
    if (is_directory(flags->path)) {
      found.tables = tables_from(flags->path);
      check_tables(found.model, found.tables);
    }
    if (!flags->engine.empty()) {
      found.engine = flags->engine;
      const std::vector<std::string_view> engines = {flags->engine == "hf" ? "exact" : "hf", flags->engine};
      found.treatment = compare_engines(found.model, {.engines = engines});
    }
    print(flags->json ? as_json(found) : as_text(found));
    return kDone;
  };
  return verb;
}

}  // namespace posenc::cli
