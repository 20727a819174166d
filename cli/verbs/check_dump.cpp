#include "cli/verbs/check_dump.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/arrays/dump.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "posenc/error.h"
#include "posenc/json.h"
#include "posenc/layer.h"
#include "posenc/report_json.h"

namespace posenc::cli {
namespace {

// One tensor of a layer: its result, or why there is none.
struct Checked {
  DumpedTensor tensor;
  CheckResult result = {};
  std::string problem = {};
  bool passes() const {
    return problem.empty() && result.agreement != Agreement::kDiffers && result.agreement != Agreement::kInconclusive;
  }
};

// Why vectors of a layer cannot be compared with this scheme; "" if they can.
std::string refusal_of(const LayerGroup& group, bool is_key) {
  if (!group.scheme)
    return fmt::format("not compared: the layer uses {}, which posenc cannot compute", group.scheme_name);
  if (const auto* const rope = std::get_if<Rope>(&*group.scheme)) {
    const bool differs = is_key && std::holds_alternative<XposScaling>(*rope->scaling);
    return differs ? "not compared: xpos treats keys unlike queries" : "";
  }
  if (std::holds_alternative<None>(*group.scheme)) return "";
  return fmt::format("not compared: {} does not rotate queries and keys", group.scheme_name);
}

Checked checked(const DumpedTensor& tensor, const LayerGroup& group, const DumpFlags& flags) {
  Checked one{.tensor = tensor, .problem = refusal_of(group, tensor.is_key)};
  if (!one.problem.empty()) return one;
  TwoTensorFlags files = flags.tensors;
  files.before = tensor.before;
  files.after = tensor.after;
  const TwoTensors two = read_two_tensors(files, "check");
  CheckOptions options = flags.options;
  options.positions = two.positions;
  options.axes = two.axes;
  options.first_position = group.first_position;
  try {
    one.result = check(*group.scheme, two.before_view, two.after_view, options);
  } catch (const Error& error) {
    refuse(fmt::format("{}: {}", tensor.after, error.what()));
  }
  return one;
}

// Scores are the same only if queries and keys of a layer are permuted alike.
void compare_permutations(std::vector<Checked>& list) {
  for (std::size_t i = 1; i < list.size(); ++i) {
    Checked &q = list[i - 1], &k = list[i];
    if (q.tensor.layer != k.tensor.layer || !q.passes() || !k.passes()) continue;
    const bool is_permuted = q.result.agreement == Agreement::kUpToPermutation;
    if (is_permuted == (k.result.agreement == Agreement::kUpToPermutation)) continue;
    const std::string_view sentence = "features of queries and keys are in different orders, so scores differ";
    q.problem = k.problem = sentence;
  }
}

std::string_view plural_of(const Checked& one) { return one.tensor.is_key ? "keys" : "queries"; }

// "queries differ", and below it why; the same text for layers with the same verdict.
std::string text_of(const Checked& one) {
  if (!one.problem.empty()) return fmt::format("{}: {}", plural_of(one), one.problem);
  if (one.passes()) {
    const bool is_plain = one.result.agreement == Agreement::kAgrees;
    return fmt::format("{} agree{}", plural_of(one), is_plain ? "" : " up to a permutation of q and k");
  }
  if (one.result.agreement == Agreement::kInconclusive) {
    return fmt::format("{} inconclusive: {}", plural_of(one), one.result.reason);
  }
  std::string text = fmt::format("{} differ", plural_of(one));
  if (!one.result.where.empty()) text += fmt::format(": {}", one.result.where);
  for (const std::string& line : one.result.advice) text += fmt::format("\n{}", line);
  return text;
}

struct Row {
  std::vector<std::int64_t> layers;
  std::vector<std::string> texts;
  double largest = 0;
  bool passes = true;
};

// One row for layers that were found alike, in the order of the first of each.
std::vector<Row> rows_of(const std::vector<Checked>& list) {
  std::vector<Row> by_layer, rows;
  for (const Checked& one : list) {
    if (by_layer.empty() || by_layer.back().layers.front() != one.tensor.layer) {
      by_layer.push_back({.layers = {one.tensor.layer}, .texts = {}});
    }
    Row& row = by_layer.back();
    row.texts.push_back(text_of(one));
    row.largest = std::max(row.largest, one.result.largest_difference);
    row.passes = row.passes && one.passes();
  }
  for (Row& row : by_layer) {
    const auto same =
        std::find_if(rows.begin(), rows.end(), [&](const Row& other) { return other.texts == row.texts; });
    if (same == rows.end()) {
      rows.push_back(std::move(row));
      continue;
    }
    same->layers.push_back(row.layers.front());
    same->largest = std::max(same->largest, row.largest);
  }
  return rows;
}

// The layers with attention that the dump does not have.
std::vector<std::int64_t> missing_layers(const Model& model, const std::string& part,
                                         const std::vector<Checked>& list) {
  std::set<std::int64_t> missing;
  const auto add = [&](const std::vector<LayerGroup>& groups) {
    for (const LayerGroup& group : groups) {
      if (group.token_mixer.empty()) missing.insert(group.layers.begin(), group.layers.end());
    }
  };
  if (part.empty()) add(model.groups);
  for (const ModelPart& one : model.parts) {
    if (one.name == part) add(one.groups);
  }
  for (const Checked& one : list) missing.erase(one.tensor.layer);
  return {missing.begin(), missing.end()};
}

std::string paragraph(const std::string& text, int indent = 0) {
  std::string result;
  for (const std::string& line : wrap(text, std::min(output_columns(), 100) - indent)) {
    result += std::string(indent, ' ') + line + "\n";
  }
  return result;
}

void add_row(std::string& text, const Row& row) {
  const std::string which =
      fmt::format("{} {}", row.layers.size() == 1 ? "layer" : "layers", layer_ranges(row.layers));
  text += fmt::format("\n{}\n", bold(which, wants_colour(STDOUT_FILENO)));
  for (const std::string& one : row.texts) {
    std::size_t from = 0;
    while (from <= one.size()) {  // the first line is the verdict, the others what to change
      const std::size_t end = std::min(one.find('\n', from), one.size());
      text += from == 0 ? paragraph(one.substr(0, end), 2) : bullet(one.substr(from, end - from));
      from = end + 1;
    }
  }
  if (row.passes) text += fmt::format("  largest difference {:.3g}\n", row.largest);
}

std::string as_text(const DumpFlags& flags, const std::vector<Checked>& list,
                    const std::vector<std::int64_t>& missing) {
  const std::vector<Row> rows = rows_of(list);
  std::size_t layers = 0, passing = 0;
  for (const Row& row : rows) {
    layers += row.layers.size();
    if (row.passes) passing += row.layers.size();
  }
  std::string text =
      fmt::format("{} of {} {} {} as {} says\n", bold(std::to_string(passing), wants_colour(STDOUT_FILENO)), layers,
                  layers == 1 ? "layer" : "layers", passing == 1 ? "rotates" : "rotate", flags.model.path);
  for (const Row& row : rows) add_row(text, row);
  if (passing < layers) {
    text +=
        "\n" + paragraph(fmt::format("For more about one layer: posenc check --model {} --layer-type N BEFORE AFTER",
                                     flags.model.path));
  }
  if (!missing.empty()) text += "\n" + paragraph(fmt::format("not in the dump: layers {}", layer_ranges(missing)));
  return text;
}

Json as_json(const DumpFlags& flags, const std::vector<Checked>& list, const std::vector<std::int64_t>& missing) {
  Json::Array layers;
  bool agrees = true;
  for (const Checked& one : list) {
    agrees = agrees && one.passes();
    layers.emplace_back(Json::Object{{"layer", one.tensor.layer},
                                     {"tensor", one.tensor.is_key ? "k" : "q"},
                                     {"agrees", one.passes()},
                                     {"problem", one.problem},
                                     {"check", one.result.tolerance > 0 ? json_of(one.result) : Json(nullptr)}});
  }
  return Json::Object{{"source", flags.model.path},
                      {"dump", flags.path},
                      {"agrees", agrees},
                      {"layers", std::move(layers)},
                      {"missing", layer_ranges(missing)}};
}

}  // namespace

int check_dump(const DumpFlags& flags) {
  const Dump dump = find_dump(flags.path);
  const Model model = model_from(flags.model.path);
  DumpFlags each = flags;
  if (each.tensors.positions.empty() && !dump.positions.empty()) each.tensors.positions = "@" + dump.positions;
  for (const std::string& name : dump.unread) tell(fmt::format("note: {} is not read", one_line(name)));
  std::vector<Checked> list;
  for (const DumpedTensor& tensor : dump.tensors) {
    const LayerGroup* group = nullptr;
    try {
      group = &group_of(model, tensor.layer, flags.model.part);
    } catch (const Error& error) {
      refuse(fmt::format("{}: {}", tensor.before, error.what()));
    }
    list.push_back(checked(tensor, *group, each));
  }
  compare_permutations(list);
  const std::vector<std::int64_t> missing = missing_layers(model, flags.model.part, list);
  print(flags.tensors.json ? dump_json(as_json(flags, list, missing), 2) + "\n" : as_text(flags, list, missing));
  return std::all_of(list.begin(), list.end(), [](const Checked& one) { return one.passes(); }) ? kDone : kNo;
}

}  // namespace posenc::cli
