// What the npm package can ask: how a model encodes position, and whether tensors agree with it.

#include <fmt/format.h>

#include "explorer/wasm/package.h"
#include "posenc/check.h"
#include "posenc/diagnosis.h"
#include "posenc/error.h"
#include "posenc/gguf.h"
#include "posenc/layer.h"
#include "posenc/model.h"
#include "posenc/report_json.h"
#include "posenc/version.h"

namespace posenc::page {
namespace {

Model model_from(std::span<const std::byte> bytes) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return text.starts_with("GGUF") ? read_model(read_gguf_head(bytes), bytes) : read_model(text);
}

Answer version(const Question&) { return {Json::Object{{"version", POSENC_VERSION}}, {}}; }
Answer inspect_model(const Question& question) { return {json_of(model_from(piece(question, "model"))), {}}; }

// The layers that are compared: those of the given index and part, or all, if they encode position alike.
LayerGroup asked_layers(const Model& model, const Json& fields) {
  const std::string part = text(fields, "part");
  if (fields.find("layer") != nullptr || !part.empty()) return group_of(model, integer(fields, "layer", 0), part);
  if (model.groups.empty()) raise(fmt::format("check: {} has no layers of text; choose a part", model.model_type));
  for (const LayerGroup& group : model.groups) {
    const LayerGroup& first = model.groups.front();
    if (group.scheme == first.scheme && group.scheme_name == first.scheme_name &&
        group.first_position == first.first_position) {
      continue;
    }
    std::string choices;
    for (const LayerGroup& one : model.groups) {
      const std::string& name = one.layer_type.empty() ? one.scheme_name : one.layer_type;
      choices += fmt::format("{}{} (layers {})", choices.empty() ? "" : ", ", name, layer_ranges(one.layers));
    }
    raise(fmt::format("check: the layers of {} differ; choose a layer: {}", model.model_type, choices));
  }
  return model.groups.front();
}

struct Expectation {
  Scheme scheme = {};
  std::int64_t first_position = 0;
};

Expectation expected(const Question& question) {
  const Json* const scheme = question.fields.find("scheme");
  if ((scheme != nullptr) == has_piece(question, "model")) raise("check: needs a scheme or a model, and not both");
  if (scheme != nullptr) return {.scheme = scheme_from(*scheme)};
  const Model model = model_from(piece(question, "model"));
  const LayerGroup group = asked_layers(model, question.fields);
  if (!group.scheme) {
    raise(fmt::format("check: {} uses {}, which posenc does not compute: {}", model.model_type, group.scheme_name,
                      group.formula));
  }
  return {.scheme = *group.scheme, .first_position = group.first_position};
}

struct Ordered {
  ConstTensorView before, after;
  bool is_swapped = false;  // heads came after tokens
};

// The tensors with the sequence last but one, whatever the order of their axes.
Ordered ordered(const Question& question, std::string_view verb, NpyArray& kept_before, NpyArray& kept_after) {
  Ordered made{.before = tensor(question, verb, "before", kept_before),
               .after = tensor(question, verb, "after", kept_after)};
  const std::string order = text(question.fields, "order");
  if (order.empty()) return made;
  made.is_swapped = order == "shd" || order == "bshd";
  if (!made.is_swapped && order != "sd" && order != "hsd" && order != "bsd" && order != "bhsd") {
    raise(fmt::format("{}: order must be sd, hsd, shd, bsd, bhsd or bshd but is {}", verb, order));
  }
  for (ConstTensorView* const one : {&made.before, &made.after}) {
    const int rank = one->shape.rank;
    if (rank != std::ssize(order)) {
      raise(fmt::format("{}: order is {}, but a tensor is {}", verb, order, to_string(one->shape)));
    }
    if (made.is_swapped) *one = swap_axes(*one, rank - 3, rank - 2);
  }
  return made;
}

}  // namespace

Answer check_tensors(const Question& question) {
  const Json& fields = question.fields;
  const Expectation wanted = expected(question);
  NpyArray kept_before, kept_after, kept_weights;
  const Ordered two = ordered(question, "check", kept_before, kept_after);
  const Ids positions = ids(question, "check", "positions"), keys = ids(question, "check", "keys");
  if (!keys.values.empty() && keys.axes != positions.axes && !positions.values.empty()) {
    raise("check: keys must have as many axes as positions");
  }
  CheckOptions options{.positions = positions.values,
                       .keys = keys.values,
                       .axes = positions.values.empty() ? keys.axes : positions.axes,
                       .first_position = integer(fields, "first", wanted.first_position),
                       .is_causal = flag(fields, "causal"),
                       .tolerance = number(fields, "tolerance", 0),
                       .length = integer(fields, "length", 0)};
  if (has_piece(question, "weights")) options.weights = tensor(question, "check", "weights", kept_weights);
  CheckResult result = check(wanted.scheme, two.before, two.after, options);
  if (result.first && two.is_swapped) {  // in the caller's own order
    std::vector<std::int64_t>& index = result.first->index;
    std::swap(index[index.size() - 3], index[index.size() - 2]);
  }
  return {json_of(result), {}};
}

Answer diagnose_tensors(const Question& question) {
  NpyArray kept_before, kept_after;
  const Ordered two = ordered(question, "diagnose", kept_before, kept_after);
  const Ids positions = ids(question, "diagnose", "positions");
  return {json_of(diagnose(two.before, two.after, {.positions = positions.values, .axes = positions.axes})), {}};
}

std::span<const NamedCall> calls() {
  static constexpr NamedCall kCalls[] = {
      {"version", version},           {"inspect", inspect_model},    {"check", check_tensors},
      {"diagnose", diagnose_tensors}, {"tabulate", tabulate_scheme}, {"positions", make_positions},
  };
  return kCalls;
}

}  // namespace posenc::page
