#include <fmt/format.h>

#include <array>
#include <cmath>

#include "diagnosis/narrow.h"
#include "diagnosis/no_position.h"
#include "diagnosis/remarks.h"
#include "diagnosis/rotations.h"
#include "diagnosis/score_bias.h"
#include "diagnosis/waves.h"

namespace posenc {
namespace {

using namespace diagnosis;

constexpr std::array<std::string_view, 8> kAngleNames = {
    "exact",          "hf-f32",      "ggml-f32",        "bf16-frequencies",
    "bf16-positions", "bf16-angles", "f16-frequencies", "f16-angles"};
constexpr std::array<std::string_view, 7> kVerdictNames = {
    "sure", "likely", "unchanged", "unknown-frequencies", "not-a-rotation", "too-little", "no-position"};

bool is_found(const Diagnosis& diagnosis) {
  return diagnosis.verdict == Verdict::kSure || diagnosis.verdict == Verdict::kLikely;
}

// Requires several heads per token, or enough tokens: a single one fits any pairing of features.
bool has_enough(const Samples& samples) {
  if (samples.span() < 1 || samples.sequence < 2) return false;
  return (samples.span() >= 3 && samples.sequence >= 4) || samples.heads >= 4;
}

// By position along the sequence: the better of rotations and additions.
Diagnosis along_sequence(const Samples& samples) {
  if (!has_enough(samples)) {
    Diagnosis result;
    result.verdict = Verdict::kTooLittle;
    return result;
  }
  Diagnosis rotation = explain_by_rotation(samples);
  // pairs that rotate steadily are a rotation, whatever their frequencies
  if (is_found(rotation) || rotation.verdict == Verdict::kUnknown) return rotation;
  if (std::optional<Diagnosis> waves = explain_by_waves(samples)) return *waves;
  if (std::optional<Diagnosis> moved = explain_by_other_positions(samples)) return *moved;
  return rotation;
}

// Along the axis before the sequence: a rotation by head, or a table added along the batch.
std::optional<Diagnosis> along_heads(ConstTensorView before, ConstTensorView after) {
  const int rank = before.shape.rank;
  if (rank < 3 || before.shape[rank - 3] < 2) return std::nullopt;
  const Samples samples =
      take_samples(swap_axes(before, rank - 3, rank - 2), swap_axes(after, rank - 3, rank - 2), {});
  if (!has_enough(samples)) return std::nullopt;
  Diagnosis result = explain_by_rotation(samples);
  if (!is_found(result)) {
    std::optional<Diagnosis> waves = explain_by_waves(samples);
    if (!waves) return std::nullopt;
    result = *waves;
  }
  result.best->is_along_heads = true;
  for (Convention& other : result.others) other.is_along_heads = true;
  return result;
}

}  // namespace

std::string_view name_of(AngleKind kind) noexcept { return kAngleNames[static_cast<std::size_t>(kind)]; }
std::string_view name_of(Verdict verdict) noexcept { return kVerdictNames[static_cast<std::size_t>(verdict)]; }

namespace {

Diagnosis diagnosed(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  Diagnosis result;
  // masked scores are not finite, so these are checked first
  const bool has_scores = has_masks(before) || has_masks(after);
  if (has_scores) {
    if (std::optional<Diagnosis> bias = explain_by_bias(before, after, options)) return *bias;
    result.remarks.emplace_back(
        "the tensors hold −infinity, as masked scores do, and the change of the others is neither ALiBi nor T5");
    return result;
  }
  const Samples samples = take_samples(before, after, options);
  if (samples.change <= samples.rounding * samples.rounding * samples.energy) {
    result.verdict = Verdict::kUnchanged;
    result.remarks.emplace_back("the tensors are the same: nothing was applied, or only at position 0");
    return result;
  }
  if (std::optional<std::string> text = exact_change(samples)) {
    result.verdict = Verdict::kNoPosition;
    result.remarks.push_back(std::move(*text));
    return result;
  }
  result = along_sequence(samples);
  if (!is_found(result) && result.verdict != Verdict::kUnknown) {
    const std::optional<Diagnosis> bias = explain_by_bias(before, after, options);
    if (bias && (bias->best || result.verdict == Verdict::kNone)) return *bias;
    if (std::optional<Diagnosis> other = along_heads(before, after)) result = std::move(*other);
  }
  const std::vector<std::string> patterns = std::move(result.remarks);
  result.remarks = remarks_on(result, samples.has_known_positions, !patterns.empty());
  result.remarks.insert(result.remarks.end(), patterns.begin(), patterns.end());
  if (result.verdict == Verdict::kNone) {
    Guess guess = guess_change(samples);
    if (guess.is_sure) result.verdict = Verdict::kNoPosition;
    if (!guess.text.empty()) result.remarks.push_back(std::move(guess.text));
  }
  return result;
}

}  // namespace

Diagnosis diagnose(ConstTensorView before, ConstTensorView after, const DiagnosisOptions& options) {
  check_tensors(before, after, options);
  const Narrowed narrowed({before, after});
  // rounded values of a tensor that is not are a change themselves
  const std::optional<DataType> type = narrowed.type();
  if (!type || narrowed.tensors().before.type != *type) return diagnosed(before, after, options);
  Diagnosis result = diagnosed(narrowed.tensors().before, narrowed.tensors().after, options);
  result.remarks.push_back(
      fmt::format("all values are {}, in tensors of another type: compared as {}", name_of(*type), name_of(*type)));
  return result;
}

}  // namespace posenc
