#include "posenc/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "diagnosis/comparison.h"
#include "diagnosis/element.h"
#include "diagnosis/explain.h"
#include "diagnosis/narrow.h"
#include "diagnosis/seen.h"
#include "posenc/error.h"

namespace posenc {
namespace {

using namespace diagnosis;

constexpr std::array<std::string_view, 5> kAgreementNames = {"agrees", "agrees-up-to-query",
                                                             "agrees-up-to-permutation", "differs", "inconclusive"};

void check_arguments(const Scheme& scheme, const Tensors& two, const CheckOptions& options) {
  const Extents& shape = two.before.shape;
  if (!(shape == two.after.shape)) {
    raise(fmt::format("check: both tensors must have the same shape, but have {} and {}", to_string(shape),
                      to_string(two.after.shape)));
  }
  if (shape.rank < 2 || shape.rank > 4 || count_of(shape) <= 0) {
    raise(fmt::format("check: {} tensors have 2 to 4 axes and no empty one, not {}", name_of(scheme),
                      to_string(shape)));
  }
  for (const DataType type : {two.before.type, two.after.type}) {
    if (type == DataType::kI64) raise("check: the tensors must be floating-point, not integers");
    if (type > DataType::kBF16)
      raise(fmt::format("check: the tensors must be f32, f64, f16 or bf16, not {}", name_of(type)));
  }
  if (!(options.tolerance >= 0) || !std::isfinite(options.tolerance)) {
    raise(fmt::format("check: the tolerance must be at least 0 but is {}", options.tolerance));
  }
  if (options.length < 0) raise(fmt::format("check: the length must not be negative but is {}", options.length));
  if (options.axes < 1 || options.axes > 8) raise(fmt::format("check: {} axes are not 1 to 8", options.axes));
  if (options.positions.empty() && options.axes > 1) raise("check: positions with several axes must be given");
}

void check_bias(const Scheme& scheme, const Bias& form, const Extents& shape) {
  if (needs_content(form)) {
    raise(fmt::format("check: {} needs queries and keys, not scores: compare the output of attention instead",
                      name_of(scheme)));
  }
  const std::int64_t heads = shape.rank == 2 ? 1 : shape.back(2);
  if (form.heads != heads) {
    raise(
        fmt::format("check: {} has {} heads, but the scores {} have {}: biases are compared on scores [heads, "
                    "queries, keys]",
                    name_of(scheme), form.heads, to_string(shape), heads));
  }
}

}  // namespace

std::string_view name_of(Agreement agreement) noexcept {
  return kAgreementNames[static_cast<std::size_t>(agreement)];
}

double default_tolerance(DataType type) noexcept {
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

namespace {

// The largest error, relative to the size of a pair, of arithmetic in which a product, a sum and a cosine are rounded.
double arithmetic_error(DataType type) {
  const int bits = type == DataType::kF64 ? 53 : type == DataType::kF32 ? 24 : type == DataType::kF16 ? 11 : 8;
  return 3 * std::ldexp(1.0, -bits);
}

// Long enough for every position; what depends on the length is prepared for the actual sequence.
std::int64_t length_of(const Scheme& scheme, const Extents& shape, const CheckOptions& options) {
  const auto largest = [](std::span<const std::int64_t> ids, std::int64_t start) {
    return ids.empty() ? start : std::max(start, *std::max_element(ids.begin(), ids.end()));
  };
  const std::int64_t counted = std::max(shape.back(1), options.keys.empty() ? shape.back(1) : shape.back(0));
  std::int64_t least =
      options.positions.empty() ? options.first_position + counted : largest(options.positions, 0) + 1;
  if (is_bias(scheme)) {
    least = std::max({least, largest(options.keys, 0) + 1, options.first_position + shape.back(0)});
  }
  if (options.length == 0) return least;
  if (options.length < least) {
    raise(
        fmt::format("check: a length of {} tokens does not reach the last position, {}", options.length, least - 1));
  }
  return options.length;
}

// One comparison of two tensors with a scheme.
class Check {
 public:
  Check(const Scheme& scheme, const Tensors& two, const CheckOptions& options)
      : scheme_(scheme), two_(two), options_(options), length_(length_of(scheme, two.before.shape, options)) {}

  CheckResult run() {
    CheckResult result = agreeing();
    if (result.agreement != Agreement::kDiffers) return result;
    if (std::optional<CheckResult> permuted = elsewhere()) return *permuted;
    explain(result);
    return result;
  }

 private:
  // Whether it agrees with any kind of angles, and what these tensors could have shown; if it differs, no more than that.
  CheckResult agreeing() {
    CheckResult best;
    for (const Numerics numerics : {Numerics::kExact, Numerics::kHfF32, Numerics::kGgmlF32}) {
      if (numerics != Numerics::kExact && is_exact_alone(scheme_)) break;
      CheckResult one = with(numerics);
      const bool is_better = one.agreement != Agreement::kDiffers && best.agreement == Agreement::kDiffers;
      if (numerics == Numerics::kExact || is_better) best = std::move(one);
      if (best.agreement == Agreement::kDiffers) continue;
      weigh(probe(best), best);
      break;
    }
    return best;
  }

  // The same pairs, written to other features: queries and keys treated alike give the same scores.
  std::optional<CheckResult> elsewhere() const {
    const auto* const rope = std::get_if<Rope>(&scheme_);
    if (rope == nullptr || rope->dims <= 2) return std::nullopt;
    const PairPlaces read = placement_of(rope->layout, rope->dims / 2).read;
    for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves,
                                    PairLayout::kHalvesToInterleaved}) {
      if (layout == rope->layout || !(placement_of(layout, rope->dims / 2).read == read)) continue;
      Rope port = *rope;
      port.layout = layout;
      const Scheme scheme = port;
      CheckResult result = Check(scheme, two_, options_).agreeing();
      if (result.agreement == Agreement::kDiffers) continue;
      if (result.agreement == Agreement::kAgrees) result.agreement = Agreement::kUpToPermutation;
      return result;
    }
    return std::nullopt;
  }

  Form form_with(Numerics numerics) const {
    return prepare(scheme_, {.length = length_, .numerics = numerics, .weights = options_.weights});
  }

  CheckResult with(Numerics numerics) {
    const Form form = form_with(numerics);
    const Extents& shape = two_.before.shape;
    if (const auto* const one = std::get_if<Bias>(&form)) check_bias(scheme_, *one, shape);
    positions_ = check_positions(form, name_of(scheme_), shape, options_);
    Expected expected = expected_of(form, two_.before, positions_, options_.axes);
    const auto* const rotation = std::get_if<Rotation>(&form);
    if (rotation != nullptr && numerics != Numerics::kExact) {
      allow_float32_angles(*rotation, shape, positions_, expected);
    }
    const Comparison comparison(two_, form, positions_, options_);
    CheckResult result = comparison.compare(expected);
    if (result.agreement == Agreement::kDiffers && is_bias(scheme_)) {
      CheckResult shifted = comparison.compare(comparison.shifted_to_queries(expected));
      if (shifted.agreement == Agreement::kAgrees && shifted.largest_change > 0) {
        shifted.agreement = Agreement::kUpToQuery;
        result = shifted;
      }
    }
    result.numerics = numerics;
    return result;
  }

  double rounding() const { return std::max(arithmetic_error(two_.before.type), arithmetic_error(two_.after.type)); }

  // What a comparison that found no difference could have seen.
  Probe probe(const CheckResult& result) const {
    const Form form = form_with(Numerics::kExact);
    const Comparison comparison(two_, form, positions_, options_);
    Probe probe{.scheme = scheme_,
                .shape = two_.before.shape,
                .before = expected_of(form, two_.before, positions_, options_.axes).before,
                .where = {positions_, options_.axes, length_, options_.weights},
                .tolerance = comparison.tolerance(),
                .floor = comparison.floor(),
                .rounding = rounding(),
                .is_up_to_query = result.agreement == Agreement::kUpToQuery};
    probe.skipped = comparison.skipped(probe.before);
    return probe;
  }

  Difference difference() const {
    const Form form = form_with(Numerics::kExact);
    const Comparison comparison(two_, form, positions_, options_);
    Difference from{.scheme = scheme_,
                    .two = two_,
                    .options = options_,
                    .positions = positions_,
                    .length = length_,
                    .expected = expected_of(form, two_.before, positions_, options_.axes),
                    .misses = {},
                    .skipped = {},
                    .tolerance = comparison.tolerance(),
                    .floor = comparison.floor(),
                    .rounding = rounding()};
    if (const auto* const rotation = std::get_if<Rotation>(&form); rotation != nullptr && is_plain(*rotation)) {
      allow_float32_angles(*rotation, two_.before.shape, positions_, from.expected);
    }
    from.misses = comparison.misses(from.expected);
    from.skipped = comparison.skipped(from.expected.before);
    return from;
  }

  bool is_finite() const {
    const ConstTensorView& after = two_.after;
    for (std::int64_t i = 0; i < count_of(after.shape); ++i) {
      const double value = element(after, offset_of(index_of(i, after.shape), after.strides));
      if (!std::isfinite(value) && !(is_bias(scheme_) && is_mask(value, after.type))) return false;
    }
    return true;
  }

  // If it differs: what was applied instead.
  void explain(CheckResult& result) const {
    if (!is_finite()) {
      result.advice.emplace_back("The result holds numbers that are not finite.");
      return;
    }
    diagnosis::explain(difference(), result);
    if (!is_bias(scheme_) || options_.is_causal) return;
    CheckOptions causal = options_;
    causal.is_causal = true;
    causal.tolerance = result.tolerance;
    const Form form = form_with(Numerics::kExact);
    const Comparison comparison(two_, form, positions_, causal);
    const Expected expected = expected_of(form, two_.before, positions_, options_.axes);
    const bool agrees = comparison.compare(expected).agreement == Agreement::kAgrees ||
                        comparison.compare(comparison.shifted_to_queries(expected)).agreement == Agreement::kAgrees;
    if (agrees) {
      result.advice.emplace_back(
          "Keys at or before their query agree: use --causal if a mask removes the later ones.");
    }
  }

  const Scheme& scheme_;
  Tensors two_;
  const CheckOptions& options_;
  std::int64_t length_ = 0;
  CheckPositions positions_;
};

}  // namespace

CheckResult check(const Scheme& scheme, ConstTensorView before, ConstTensorView after, const CheckOptions& options) {
  const Tensors two{before, after};
  check_arguments(scheme, two, options);
  const Narrowed narrowed(two);
  CheckResult result = Check(scheme, narrowed.tensors(), options).run();
  result.values_type = narrowed.type();
  return result;
}

}  // namespace posenc
