#include "cli/arrays/two_tensors.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cmath>

#include "cli/arrays/elements.h"
#include "cli/arrays/input_array.h"
#include "cli/flags/positions_argument.h"
#include "cli/system/failure.h"
#include "cli/system/terminal.h"
#include "posenc/scheme.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

NpyArray load(const std::string& path, const std::string& dtype) {
  const InputArray input(path, NpyOptions{.void2_is_bf16 = dtype == "bf16"});
  if (input.type() == DataType::kI64) refuse(fmt::format("{}: holds integers, not vectors", path));
  if (!dtype.empty() && float_type_from(dtype) != input.type()) {
    refuse(fmt::format("{}: holds {}, but --dtype says {}", path, name_of(input.type()), dtype));
  }
  return load_array(input);
}

// bshd and shd have the sequence before the heads.
ConstTensorView with_sequence_last(const NpyArray& array, const std::string& axes, const std::string& path) {
  const ConstTensorView plain = array.view();
  if (axes.empty()) return plain;
  for (const std::string_view known : {"sd", "hsd", "bsd", "bhsd", "shd", "bshd"}) {
    if (known != axes) continue;
    if (std::ssize(axes) != plain.shape.rank) {
      refuse(fmt::format("{}: is {}, but --axes says {}", path, to_string(plain.shape), axes));
    }
    const int rank = plain.shape.rank;
    return axes.ends_with("shd") ? swap_axes(plain, rank - 3, rank - 2) : plain;
  }
  refuse(fmt::format("--axes: '{}' is not one of sd, hsd, shd, bsd, bhsd, bshd", axes));
}

Json scaling_json(const Rope& rope) { return *parse_json(to_json(Scheme(rope))).find("scaling"); }

std::string scaling_text(const Rope& rope) {
  std::string text;
  const Json json = scaling_json(rope);
  for (const auto& [key, value] : *json.as<Json::Object>()) {
    if (key == "type") {
      text = *value.as<std::string>();
    } else if (value.as<std::nullptr_t>() == nullptr) {
      text += fmt::format(", {} {}", key, dump_json(value));
    }
  }
  return text;
}

std::string finished(std::string text, const std::vector<std::string>& remarks) {
  if (!remarks.empty()) text += "\n";
  for (const std::string& remark : remarks) {
    std::string_view bullet = "- ";
    for (const std::string& line : wrap(remark, std::min(output_columns(), 100) - 4)) {
      text += fmt::format("  {}{}\n", bullet, line);
      bullet = "  ";
    }
  }
  return text;
}

std::string_view verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::kSure:
      return "one convention explains every number";
    case Verdict::kLikely:
      return "the likeliest of several";
    case Verdict::kUnchanged:
      return "nothing changed";
    case Verdict::kUnknown:
      return "a rotation, but by frequencies of no known scheme";
    case Verdict::kTooLittle:
      return "too few tokens to tell";
    default:
      return "not a rotation, and no sinusoids were added";
  }
}

}  // namespace

void add_two_tensor_flags(Command verb, TwoTensorFlags& flags) {
  verb.add_option("--before", flags.before, "the vectors before position was applied").type_name("FILE");
  verb.add_option("--after", flags.after, "the same after it").type_name("FILE");
  verb.add_option("--positions", flags.positions,
                  "position of each token: 0:8, 0,1,5 or @ids.npy, int64 [n] or [axes, n] (default: consecutive)")
      .type_name("P");
  verb.add_option("--axes", flags.axes,
                  "what the axes are: sd, hsd, shd, bsd, bhsd or bshd (b batch, h heads, s sequence, d features; "
                  "default: the last two are sd)")
      .type_name("WORD");
  verb.add_option("--dtype", flags.dtype, "their type; bf16 must be said, for .npy cannot").type_name("TYPE");
  verb.add_flag("--json", flags.json, "one JSON document");
}

TwoTensors read_two_tensors(const TwoTensorFlags& flags, std::string_view verb) {
  if (flags.before.empty()) refuse(fmt::format("{}: --before is missing", verb));
  if (flags.after.empty()) refuse(fmt::format("{}: --after is missing", verb));
  TwoTensors two;
  two.before = load(flags.before, flags.dtype);
  two.after = load(flags.after, flags.dtype);
  if (!(two.before.shape == two.after.shape)) {
    refuse(fmt::format("{}: is {}, but {} is {}", flags.before, to_string(two.before.shape), flags.after,
                       to_string(two.after.shape)));
  }
  if (two.before.shape.rank < 2 || two.before.shape.rank > 4 || count_of(two.before.shape) == 0) {
    refuse(fmt::format("{}: is {}, where [batch, heads, sequence, features] or less is meant", flags.before,
                       to_string(two.before.shape)));
  }
  two.before_view = with_sequence_last(two.before, flags.axes, flags.before);
  two.after_view = with_sequence_last(two.after, flags.axes, flags.after);
  if (flags.positions.empty()) return two;
  const PositionList list = positions_from(flags.positions);
  const std::int64_t sequence = two.before_view.shape.back(1);
  if (list.count != sequence) {
    refuse(fmt::format("{}: has {} tokens in a sequence, but there are {} positions (--axes says which axis that is)",
                       flags.before, sequence, list.count));
  }
  two.axes = list.axes;
  for (int axis = 0; axis < list.axes; ++axis) {
    for (std::int64_t i = 0; i < sequence; ++i) two.positions.push_back(position_at(list, axis, i));
  }
  return two;
}

Json convention_json(const Convention& convention) {
  Json::Object object{{"scheme", name_of(convention.scheme)}};
  if (const auto* const rope = std::get_if<Rope>(&convention.scheme)) {
    object.emplace_back("layout", choice_name(rope->layout));
    object.emplace_back("sign", rope->sign);
    object.emplace_back("dims", rope->dims);
    object.emplace_back("first_dim", rope->first_dim);
    object.emplace_back("base", rope->base);
    if (!rope->sections.empty()) {
      object.emplace_back("sections", Json::Array(rope->sections.begin(), rope->sections.end()));
      object.emplace_back("section_order", choice_name(rope->section_order));
    }
    object.emplace_back("scaling", scaling_json(*rope));
  } else if (const auto* const waves = std::get_if<Sinusoidal>(&convention.scheme)) {
    object.emplace_back("layout", choice_name(waves->layout));
    object.emplace_back("spacing", choice_name(waves->spacing));
    object.emplace_back("dims", waves->width);
    object.emplace_back("base", waves->base);
  }
  object.emplace_back("magnitude", convention.magnitude);
  object.emplace_back("first_position", convention.first_position);
  object.emplace_back("numerics", name_of(convention.numerics));
  object.emplace_back("numerics_sure", convention.is_numerics_sure);
  object.emplace_back("swapped", convention.is_swapped);
  object.emplace_back("residual", convention.residual);
  return object;
}

Json diagnosis_json(const Diagnosis& diagnosis) {
  Json::Array others, remarks;
  for (const Convention& other : diagnosis.others) others.push_back(convention_json(other));
  for (const std::string& remark : diagnosis.remarks) remarks.emplace_back(remark);
  return Json::Object{{"verdict", name_of(diagnosis.verdict)},
                      {"best", diagnosis.best ? convention_json(*diagnosis.best) : Json(nullptr)},
                      {"others", std::move(others)},
                      {"remarks", std::move(remarks)}};
}

std::string diagnosis_text(const Diagnosis& diagnosis, bool are_positions_known) {
  const bool colour = wants_colour(STDOUT_FILENO);
  std::string text = bold(verdict_text(diagnosis.verdict), colour) + "\n";
  const auto row = [&](std::string_view name, const std::string& value) {
    text += fmt::format("  {}  {}\n", dim(pad_right(name, 14), colour), value);
  };
  if (diagnosis.best) {
    const Convention& best = *diagnosis.best;
    text += "\n";
    if (const auto* const rope = std::get_if<Rope>(&best.scheme)) {
      row("scheme", "rope");
      row("pairs", std::string(choice_name(rope->layout)));
      row("turns", fmt::format("{} features, from feature {}, {}", rope->dims, rope->first_dim,
                               rope->sign > 0 ? "counter-clockwise" : "clockwise"));
      if (!rope->sections.empty()) {
        row("axes", fmt::format("{} pairs, {}", fmt::join(rope->sections, " + "), choice_name(rope->section_order)));
      }
      if (const auto* const list = std::get_if<LongropeScaling>(&rope->scaling)) {
        std::string divisors;
        for (const double divisor : list->short_factors) divisors += fmt::format("{:.4g} ", divisor);
        std::string_view name = "divisors";
        for (const std::string& line : wrap(divisors, std::min(output_columns(), 100) - 18)) {
          row(name, line);
          name = "";
        }
      }
      if (diagnosis.verdict != Verdict::kUnknown) {
        row("base", fmt::format("{}", rope->base));
        row("scaling", scaling_text(*rope));
        row("magnitude", fmt::format("{:.6g}", best.magnitude));
      }
    } else if (const auto* const waves = std::get_if<Sinusoidal>(&best.scheme)) {
      row("scheme", "sinusoidal, added");
      row("columns", fmt::format("{}, spacing {}", choice_name(waves->layout), choice_name(waves->spacing)));
      row("scale", fmt::format("{:.6g}", best.magnitude));
    }
    if (diagnosis.verdict == Verdict::kUnknown) return finished(std::move(text), diagnosis.remarks);
    row(are_positions_known ? "positions" : "first position",
        are_positions_known ? (best.first_position == 0 ? "as given" : fmt::format("off by {}", best.first_position))
                            : fmt::format("{}", best.first_position));
    row("angle", fmt::format("{}{}", name_of(best.numerics),
                             best.is_numerics_sure ? "" : " (others cannot be told apart here)"));
    row("left over", fmt::format("{:.2g} of the size of a vector", best.residual));
  }
  return finished(std::move(text), diagnosis.remarks);
}

}  // namespace posenc::cli
