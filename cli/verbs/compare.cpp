#include "posenc/compare.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/flags/model_file.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/json.h"
#include "posenc/report_json.h"

namespace posenc::cli {
namespace {

struct CompareFlags {
  std::string model, path, engines, since;
  std::optional<std::int64_t> length;
  std::optional<double> tolerance;
  bool json = false, exit_code = false;
};

std::vector<std::string_view> engines_from(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::string_view name = text.substr(0, text.find(','));
    names.push_back(name);
    text.remove_prefix(std::min(text.size(), name.size() + 1));
  }
  return names;
}

Json as_json(const EngineComparison& found, const Model& model, const CompareFlags& flags) {
  Json::Object object{{"source", flags.model}, {"model_type", model.model_type}};
  Json::Value comparison = json_of(found).take();
  for (auto& member : std::get<Json::Object>(comparison)) object.push_back(std::move(member));
  return object;
}

std::string number(double value, bool is_there) {
  if (!is_there) return "-";
  if (value < 1e-13) return "0";  // rounding of doubles
  return value >= 0.001 && value < 1000 ? fmt::format("{:.3g}", value) : fmt::format("{:.1e}", value);
}

// One line per engine: how far it is from the first, what it does, and below it the source.
void add_engines(std::string& text, const EngineTopic& topic, int columns, bool colour) {
  int widest = 6;
  for (const EngineAnswer& one : topic.engines) widest = std::max(widest, columns_of(one.engine));
  const auto row = [&](std::string_view engine, std::string_view angle, std::string_view wave,
                       std::string_view score) {
    return fmt::format("  {}  {}  {}  {}  ", pad_right(engine, widest), pad_left(angle, 8), pad_left(wave, 8),
                       pad_left(score, 8));
  };
  const std::string head = row("engine", "angle", "cos/sin", "score");
  const int indent = columns_of(head);
  text += dim(head + "behaviour", colour) + "\n";
  for (const EngineAnswer& one : topic.engines) {
    const bool has_waves = one.is_able && topic.is_rotation;
    std::string left =
        row(one.engine, number(one.angle, has_waves), number(one.wave, has_waves), number(one.score, one.is_able));
    for (const std::string& line : wrap(one.what, columns - indent)) {
      text += left + line + "\n";
      left = std::string(indent, ' ');
    }
    std::string read = one.version.empty() ? ""
                       : one.date.empty()  ? fmt::format("{}: ", one.version)
                                           : fmt::format("{}, {}: ", one.version, one.date);
    if (!one.since.empty()) read = fmt::format("since {}; {}", one.since, read);
    for (const std::string& line : wrap(read + std::string(one.source), columns - 4)) {
      text += "    " + dim(line, colour) + "\n";
    }
  }
}

// The engines that cannot run such a model, each once.
std::vector<std::string> refusing(const EngineComparison& found) {
  std::vector<std::string> names;
  for (const EngineTopic& topic : found.topics) {
    for (const EngineAnswer& one : topic.engines) {
      if (!one.is_able && std::find(names.begin(), names.end(), one.engine) == names.end()) {
        names.emplace_back(one.engine);
      }
    }
  }
  return names;
}

std::string as_text(const EngineComparison& found, const Model& model) {
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), 100);
  std::string text =
      fmt::format("{}  a sequence of {} tokens\n", bold(one_line(model.model_type), colour), found.length);
  const auto differing =
      std::count_if(found.topics.begin(), found.topics.end(), [](auto& one) { return one.differs; });
  const std::int64_t compared = found.compared();
  if (found.topics.empty()) {
    return text + "nothing to compare: these engines have no known differences for this kind of model\n";
  }
  if (compared == 0) {
    text += "nothing was compared: at most one of these engines runs such a model\n";
  } else if (differing > 0) {
    text += fmt::format("engines differ in {} of {} topics compared\n", differing, compared);
  } else {
    text += fmt::format("engines agree within bfloat16 rounding in {} {} compared\n", compared,
                        compared == 1 ? "topic" : "topics");
  }
  for (const std::string& engine : refusing(found)) text += fmt::format("{} does not support this model\n", engine);
  for (const EngineTopic& topic : found.topics) {
    std::string where = topic.layers.empty() ? "" : fmt::format("  layers {}", topic.layers);
    if (!topic.layer_type.empty()) where += "  " + one_line(topic.layer_type);
    text += fmt::format("\n{}{}: {}\n", bold(topic.title, colour), dim(where, colour),
                        topic.differs         ? bold("engines differ", colour)
                        : topic.is_compared() ? "engines agree"
                                              : "not compared");
    for (const std::string& line : wrap(topic.sentence, columns - 2)) text += "  " + line + "\n";
    add_engines(text, topic, columns, colour);
  }
  const std::string meaning =
      "Each engine is compared with the first: angle is the largest difference of two rotation angles in radians, "
      "cos/sin the largest difference of a cosine or sine including its magnitude, score the largest difference of "
      "the last token's scores, for rotations relative to |q||k|.";
  text += "\n";
  for (const std::string& line : wrap(meaning, columns)) text += dim(line, colour) + "\n";
  return text;
}

// For a log of continuous integration: one line for each topic that differs.
std::string as_lines(const EngineComparison& found) {
  std::string text;
  for (const EngineTopic& topic : found.topics) {
    if (!topic.differs) continue;
    text += fmt::format("{}{}{}:", topic.name, topic.layers.empty() ? "" : " in layers ", topic.layers);
    for (const EngineAnswer& one : topic.engines) {
      if (!one.is_able) continue;
      text += fmt::format("{} {}{}: {}", &one == &topic.engines.front() ? "" : ";", one.engine,
                          one.differs ? fmt::format(" (score {})", number(one.score, true)) : "", one.what);
    }
    text += "\n";
  }
  for (const std::string& engine : refusing(found)) text += fmt::format("{} does not support this model\n", engine);
  if (found.compared() == 0) text += "nothing was compared\n";
  return text;
}

// What engines have changed since a day, for one model or overall.
int run_since(const CompareFlags& flags) {
  const std::optional<Model> model = flags.model.empty() ? std::nullopt : std::optional(model_from(flags.model));
  const std::vector<EngineChange> changes = engine_changes(flags.since, model ? &*model : nullptr);
  if (flags.json) {
    Json::Array list;
    for (const EngineChange& one : changes) {
      list.emplace_back(Json::Object{{"date", one.date},
                                     {"engine", one.engine},
                                     {"topic", one.topic},
                                     {"now", one.now},
                                     {"before", one.before},
                                     {"source", one.source}});
    }
    print(dump_json(Json::Object{{"since", flags.since}, {"changes", std::move(list)}}, 2) + "\n");
    return kDone;
  }
  const bool colour = wants_colour(STDOUT_FILENO);
  const int columns = std::min(output_columns(), 100);
  std::string text = changes.empty() ? fmt::format("no known change since {}\n", flags.since) : "";
  for (const EngineChange& one : changes) {
    text += fmt::format("{}{}  {}  {}\n", text.empty() ? "" : "\n", bold(one.date, colour), one.engine, one.title);
    for (const std::string& line : wrap(fmt::format("now: {}", one.now), columns - 2)) text += "  " + line + "\n";
    for (const std::string& line : wrap(fmt::format("before: {}", one.before), columns - 2))
      text += "  " + line + "\n";
    text += "  " + dim(one.source, colour) + "\n";
  }
  print(text);
  return kDone;
}

int run(const CompareFlags& flags) {
  if (!flags.since.empty()) return run_since(flags);
  if (flags.model.empty()) refuse("compare: the model is missing (posenc compare config.json)");
  const std::vector<std::string_view> engines = engines_from(flags.engines);
  CompareOptions options{.engines = engines};
  options.length = flags.length.value_or(options.length);
  options.tolerance = flags.tolerance.value_or(options.tolerance);
  const Model model = model_from(flags.model);
  const EngineComparison found = compare_engines(model, options);
  print(flags.json        ? dump_json(as_json(found, model, flags), 2) + "\n"
        : flags.exit_code ? as_lines(found)
                          : as_text(found, model));
  return found.agrees() ? kDone : kNo;
}

}  // namespace

Verb compare_verb(Command program) {
  Verb verb;
  verb.name = "compare";
  verb.summary = "show where engines disagree about a model";
  verb.usage = "PATH [--as hf,vllm,…] [--length N] [--since DATE] [--exit-code] [--json]";
  verb.details =
      "Shows where Hugging Face, vLLM, llama.cpp and CTranslate2 treat the position of this model differently, how "
      "large the difference is at this length, and where to read each engine's code. Differences are computed by "
      "applying both ways; differences below bfloat16 rounding count as agreement. Exits with 0 if all engines "
      "agree, and with 1 if they differ or nothing could be compared. More engines: hf4 (transformers 4), sglang, mlx, exllamav3, tensorrt-llm, "
      "and exact, which is the exact mathematics. With --exit-code it prints one line for each topic that differs and "
      "nothing if none does, for a test of a trainer against a server.";
  verb.examples =
      "posenc compare config.json\n"
      "posenc compare ./my-model --as hf,vllm --length 32768\n"
      "posenc compare ./my-model --as hf,sglang --exit-code\n"
      "posenc compare --since 2026-01-01\n"
      "posenc compare config.json --as exact,hf,llama.cpp --length 131072 --json";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<CompareFlags>();
  verb.command.add_option("PATH", flags->path);
  verb.command.add_option("--model", flags->model, "PATH: a config.json, a folder with one, a .gguf file, or -")
      .type_name("PATH");
  verb.command
      .add_option("--as", flags->engines,
                  fmt::format("engines to compare; the first is the reference: {}", fmt::join(known_engines(), ", ")))
      .type_name("NAMES");
  verb.command.add_integer("--length", flags->length, {.least = 1},
                           "tokens in the sequence (default: the model's longest)");
  verb.command.add_number("--tolerance", flags->tolerance, {.least = 0},
                          "largest difference of a cosine or sine that counts as agreement; twice that for a score "
                          "(default 2^-8, as bf16 rounds)");
  verb.command.add_option("--since", flags->since, "show what engines changed since a date, e.g. 2026-05-19")
      .type_name("DATE");
  verb.command.add_flag("--exit-code", flags->exit_code, "print only what differs, one line each");
  verb.command.add_flag("--json", flags->json, "one JSON document");
  verb.run = [flags] {
    if (flags->exit_code && flags->json) refuse("compare: --exit-code and --json cannot be combined");
    if (flags->exit_code && !flags->since.empty()) refuse("compare: --exit-code does not work with --since");
    if (!flags->path.empty() && !flags->model.empty()) refuse("compare: the model is given twice");
    if (flags->model.empty()) flags->model = flags->path;
    return run(*flags);
  };
  return verb;
}

}  // namespace posenc::cli
