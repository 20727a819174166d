#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arrays/elements.h"
#include "cli/arrays/numbers.h"
#include "cli/arrays/two_tensors.h"
#include "cli/flags/model_file.h"
#include "cli/flags/positions_argument.h"
#include "cli/system/failure.h"
#include "cli/system/streams.h"
#include "cli/system/terminal.h"
#include "cli/verbs/verbs.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "posenc/schemes/choice.h"

namespace posenc::cli {
namespace {

struct CheckFlags {
  TwoTensorFlags tensors;
  ModelFlags model;
  std::string tolerance;
};

// Where the fields of a scheme were not given, they follow from the file.
void follow_features(SchemeRequest& request, std::int64_t features, const std::string& path) {
  const std::string_view field = std::holds_alternative<Rope>(request.scheme) ? "dims" : "width";
  if (std::find(request.given.begin(), request.given.end(), field) != request.given.end()) return;
  if (integer_field(request.scheme, field)) follow_file(request, field, features, path);
}

// Of each token, [axes, sequence]; counted from 0 where they are not said.
std::vector<std::int64_t> positions_or_counted(const TwoTensors& two) {
  std::vector<std::int64_t> ids = two.positions;
  for (std::int64_t i = std::ssize(ids); i < two.before_view.shape.back(1); ++i) ids.push_back(i);
  return ids;
}

struct Expected {
  std::vector<double> values;  // dense, sequence before features
  std::vector<double> leeway;  // [sequence, features]: of the size of a vector, where engines differ among themselves
};

// Engines take powers in float32, each a little differently: a frequency may be 2 units in the last place off, which
// at position p is an angle of so much.
std::vector<double> leeway_of(const Rotation& form, const std::vector<std::int64_t>& ids, std::int64_t features) {
  constexpr double kTwoUlp = 2.4e-7;
  const std::size_t tokens = ids.size() / static_cast<std::size_t>(form.position_axes);
  std::vector<double> leeway(tokens * static_cast<std::size_t>(features));
  const std::int64_t pairs = pairs_of(form);
  const PairPlaces places = placement_of(form.layout, pairs).write;
  const std::int64_t first = form.first_dim < 0 ? features + form.first_dim : form.first_dim;
  for (std::size_t token = 0; token < tokens; ++token) {
    for (std::int64_t i = 0; i < pairs && form.blocks == 1; ++i) {
      const std::size_t axis = form.axes.empty() ? 0 : form.axes[static_cast<std::size_t>(i)];
      const double angle = std::fabs(radians_of(form.frequencies[static_cast<std::size_t>(i)])) * kTwoUlp *
                           static_cast<double>(ids[axis * tokens + token]);
      const std::size_t at =
          token * static_cast<std::size_t>(features) + static_cast<std::size_t>(first + i * places.step);
      leeway[at] = leeway[at + static_cast<std::size_t>(places.apart)] = angle;
    }
  }
  return leeway;
}

// The scheme applied to `before`, in double: what a perfect implementation gives.
Expected apply_scheme(const Scheme& scheme, const TwoTensors& two, Numerics numerics) {
  const Extents& shape = two.before_view.shape;
  Expected expected;
  expected.values.resize(static_cast<std::size_t>(count_of(shape)));
  const std::vector<std::int64_t> ids = positions_or_counted(two);
  const std::int64_t length = *std::max_element(ids.begin(), ids.end()) + 1;
  const Form form = prepare(scheme, {.length = length, .numerics = numerics});
  const TensorView out = view(expected.values.data(), shape);
  // a rotation by nothing is a copy in double
  rotate(out, two.before_view, {},
         Rotation{.frequencies =
                      {
                          Frequency{},
                      },
                  .layout = PairLayout::kInterleaved});
  if (const auto* const rotation = std::get_if<Rotation>(&form)) {
    check_axes(name_of(scheme), rotation->position_axes, {.count = shape.back(1), .axes = two.axes});
    rotate(out, {.ids = ids, .axes = two.axes}, *rotation);
    if (numerics != Numerics::kExact) expected.leeway = leeway_of(*rotation, ids, shape.back(0));
  } else if (const auto* const addition = std::get_if<Addition>(&form)) {
    check_axes(name_of(scheme), axes_of(*addition), {.count = shape.back(1), .axes = two.axes});
    add(out, {.ids = ids, .axes = two.axes}, *addition);
  }
  return expected;
}

struct Difference {
  double largest = 0;
  std::optional<std::vector<std::int64_t>> index;  // in the file's own axes
  double expected = 0, got = 0;
};

double rounding_room(DataType type) {
  switch (type) {
    case DataType::kF64:
      return 1e-12;
    case DataType::kF32:
      return 2e-6;
    case DataType::kF16:
      return 2e-3;
    default:
      return 1.6e-2;
  }
}

double tolerance_of(const CheckFlags& flags, const TwoTensors& two) {
  if (!flags.tolerance.empty()) return number_from(flags.tolerance, "--tolerance");
  return std::max(rounding_room(two.before.type), rounding_room(two.after.type));
}

// Tolerance is relative to the longest vector: rounding of one feature of a pair is felt by the other.
Difference compare(const Expected& expected, const TwoTensors& two, const CheckFlags& flags) {
  Difference result;
  const ConstTensorView& got = two.after_view;
  double scale = 0;
  for (const double value : expected.values) scale = std::max(scale, std::fabs(value));
  const double room = tolerance_of(flags, two) * scale;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    auto rest = static_cast<std::int64_t>(i), offset = std::int64_t{0};
    std::vector<std::int64_t> index(static_cast<std::size_t>(got.shape.rank));
    for (int axis = got.shape.rank - 1; axis >= 0; --axis) {
      index[static_cast<std::size_t>(axis)] = rest % got.shape[axis];
      offset += rest % got.shape[axis] * got.strides[axis];
      rest /= got.shape[axis];
    }
    const double value = element_at(two.after.bytes.data(), two.after.type, offset);
    const double difference = std::fabs(value - expected.values[i]);
    if (!(difference <= result.largest)) result.largest = difference;
    const double leeway = expected.leeway.empty() ? 0 : expected.leeway[i % expected.leeway.size()] * scale;
    if (!(difference <= room + leeway) && !result.index) {
      if (flags.tensors.axes.ends_with("shd")) std::swap(index[index.size() - 3], index[index.size() - 2]);
      result.index = index;
      result.expected = expected.values[i];
      result.got = value;
    }
  }
  return result;
}

// What differs between what was found and what is wanted, and what to do about it.
std::vector<std::string> advice(const Scheme& wanted, const Diagnosis& found) {
  std::vector<std::string> lines;
  const auto* const want = std::get_if<Rope>(&wanted);
  const auto* const is = found.best ? std::get_if<Rope>(&found.best->scheme) : nullptr;
  if (found.verdict == Verdict::kUnchanged) lines.emplace_back("nothing was applied at all");
  if (want == nullptr || is == nullptr) return lines;
  const auto say = [&](std::string_view what, const auto& got, const auto& should) {
    lines.push_back(fmt::format("{} is {}; this model has {}", what, got, should));
  };
  if (is->layout != want->layout) {
    const bool can_permute = want->layout == PairLayout::kHalves || want->layout == PairLayout::kInterleaved;
    const std::string_view name = choice_name(want->layout);
    lines.push_back(fmt::format("pairs are {}; this model rotates {}. {}", choice_name(is->layout), name,
                                can_permute
                                    ? fmt::format("Permute with `posenc convert --to {}` if the weights are {} "
                                                  "too, or rotate {}",
                                                  name, choice_name(is->layout), name)
                                    : fmt::format("Rotate {} pairs", name)));
  }
  if (is->sign != want->sign) {
    lines.push_back(fmt::format("pairs turn {}; this model turns them the other way. Negate the sine",
                                is->sign > 0 ? "counter-clockwise" : "clockwise"));
  }
  if (found.best->is_swapped) lines.emplace_back("sine and cosine are exchanged. Exchange them back");
  if (found.verdict == Verdict::kUnknown) {
    lines.emplace_back(
        "frequencies are those of no scheme that is known here; compare them with `posenc inspect --json`");
    return lines;
  }
  if (is->dims != want->dims) say("the number of features that turn", is->dims, want->dims);
  if (std::fabs(is->base / want->base - 1) > 1e-3) say("the base", is->base, want->base);
  if (is->scaling.index() != want->scaling.index()) {
    const auto name = [](const RopeScaling& scaling) {
      return std::visit([](const auto& one) { return one.name; }, scaling);
    };
    say("the scaling", name(is->scaling), name(want->scaling));
  }
  if (found.best->first_position != 0) {
    lines.push_back(fmt::format("positions are off by {}. Count from 0", found.best->first_position));
  }
  const double magnitude = prepare(*want, {.length = 1}).magnitude;
  if (std::fabs(found.best->magnitude / magnitude - 1) > 5e-3) {
    say("the magnitude", fmt::format("{:.6g}", found.best->magnitude), fmt::format("{:.6g}", magnitude));
  }
  if (found.best->numerics == AngleKind::kBf16Frequencies)
    lines.emplace_back("frequencies are in bf16. Keep them in float32");
  if (found.best->numerics == AngleKind::kBf16Positions)
    lines.emplace_back("positions are in bf16. Keep them as integers");
  return lines;
}

std::string index_text(const std::vector<std::int64_t>& index) { return fmt::format("[{}]", fmt::join(index, ", ")); }

void report_text(const Difference& difference, Numerics numerics, const Scheme& scheme, const Diagnosis& found,
                 bool are_known) {
  const bool colour = wants_colour(STDOUT_FILENO);
  if (!difference.index) {
    print(fmt::format("{}: the largest difference is {:.3g}{}\n", bold("agrees", colour), difference.largest,
                      numerics == Numerics::kExact ? "" : fmt::format(", with {} angles", name_of(numerics))));
    return;
  }
  std::string text =
      fmt::format("{}: at {} {:.7g} is expected and {:.7g} stands there; the largest difference is {:.3g}\n\n",
                  bold("differs", colour), index_text(*difference.index), difference.expected, difference.got,
                  difference.largest);
  text += diagnosis_text(found, are_known);
  const std::vector<std::string> lines = advice(scheme, found);
  if (!lines.empty()) text += "\n" + bold("What to change", colour) + "\n";
  for (const std::string& line : lines) {
    std::string_view bullet = "- ";
    for (const std::string& part : wrap(line, std::min(output_columns(), 100) - 4)) {
      text += fmt::format("  {}{}\n", bullet, part);
      bullet = "  ";
    }
  }
  print(text);
}

void report_json(const Difference& difference, Numerics numerics, const Scheme& scheme, const Diagnosis& found) {
  Json first(nullptr);
  if (difference.index) {
    first = Json::Object{{"index", Json::Array(difference.index->begin(), difference.index->end())},
                         {"expected", difference.expected},
                         {"got", difference.got}};
  }
  Json::Array lines;
  if (difference.index) {
    for (const std::string& line : advice(scheme, found)) lines.emplace_back(line);
  }
  print(dump_json(Json::Object{{"agrees", !difference.index},
                               {"max_abs_error", difference.largest},
                               {"first_difference", std::move(first)},
                               {"diagnosis", difference.index ? diagnosis_json(found) : Json(nullptr)},
                               {"numerics", name_of(numerics)},
                               {"advice", std::move(lines)}},
                  2) +
        "\n");
}

int run(const CheckFlags& flags, SchemeRequest& request) {
  const TwoTensors two = read_two_tensors(flags.tensors, "check");
  if (!flags.model.path.empty()) {
    take_model(flags.model, request, "check", true);
  } else {
    follow_features(request, two.before_view.shape.back(0), flags.tensors.before);
  }
  // what engines make in float32 is right as well
  Difference best;
  Numerics used = Numerics::kExact;
  for (const Numerics numerics : {Numerics::kExact, Numerics::kHfF32, Numerics::kGgmlF32}) {
    const Difference one = compare(apply_scheme(request.scheme, two, numerics), two, flags);
    if (numerics == Numerics::kExact || (!one.index && best.index)) {
      best = one;
      used = numerics;
    }
    if (!best.index) break;
  }
  Diagnosis found;
  if (best.index) {
    const std::vector<std::int64_t> ids = positions_or_counted(two);
    found = diagnose(two.before_view, two.after_view, {.positions = ids, .axes = two.axes});
  }
  if (flags.tensors.json) {
    report_json(best, used, request.scheme, found);
  } else {
    report_text(best, used, request.scheme, found, true);
  }
  return best.index ? kNo : kDone;
}

}  // namespace

Verb check_verb(Command program, const std::shared_ptr<SchemeRequest>& scheme) {
  Verb verb;
  verb.name = "check";
  verb.summary = "does your implementation agree with a scheme or a model";
  verb.usage = "SCHEME|--model PATH --before A --after B [--positions P]";
  verb.details =
      "Applies the scheme to A and compares with B, element by element. Where they differ it says at which element "
      "first, which convention made B instead, and what to change; then it exits with 1. The angles of Hugging Face "
      "and ggml, in float32, count as right.";
  verb.examples =
      "posenc check rope --base 500000 --before q.npy --after q_rotated.npy\n"
      "posenc check --model config.json --before q.npy --after q_rotated.npy --positions 0:16";
  verb.command = program.add_subcommand(verb.name);
  auto flags = std::make_shared<CheckFlags>();
  add_model_flags(verb.command, flags->model);
  add_two_tensor_flags(verb.command, flags->tensors);
  verb.command
      .add_option("--tolerance", flags->tolerance,
                  "largest difference, relative to the largest number (default: by type, 2e-6 for f32)")
      .type_name("X");
  add_scheme_commands(verb.command, scheme);
  verb.run = [flags, scheme, verb] {
    if (flags->model.path.empty()) {
      const std::vector<std::string> words = verb.command.remaining();
      require_scheme(verb, *scheme, words.empty() ? "" : words.front());
    }
    refuse_leftovers(verb.command);
    // after a scheme that has axes of its own, the letters were taken for it
    if (flags->tensors.axes.empty()) flags->tensors.axes = scheme->axes_of_x;
    return run(*flags, *scheme);
  };
  return verb;
}

}  // namespace posenc::cli
