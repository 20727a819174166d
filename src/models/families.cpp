#include "models/families.h"

#include <algorithm>
#include <array>

#include "models/classes.h"

namespace posenc::models {
namespace {

auto family_tables() {
  return std::to_array(
      {rope_families(), hybrid_families(), added_families(), bias_families(), vision_families(), audio_families()});
}

// Calls `visit` for each word until it returns false.
template <class Visit> void for_words(std::string_view text, const Visit& visit) {
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    if (!word.empty() && !visit(word)) return;
    text.remove_prefix(word.size() + (word.size() < text.size() ? 1 : 0));
  }
}

// Taken from their papers and configs: their code was not available.
constexpr std::string_view kUnread =
    "ErnieCode ernie_layout transfo-xl aya_vision_tower kimi_k3_vision perception_encoder";

}  // namespace

bool has_word(std::string_view words, std::string_view wanted) {
  bool is_there = false;
  for_words(words, [&](std::string_view word) { return !(is_there = word == wanted); });
  return is_there;
}

std::vector<const Family*> families_of(std::string_view model_type) {
  std::vector<const Family*> found;
  for (const std::span<const Family> rows : family_tables()) {
    for (const Family& family : rows) {
      if (has_word(family.types, model_type)) found.push_back(&family);
    }
  }
  return found;
}

std::vector<const Family*> assumed_families() {
  std::vector<const Family*> rows;
  for (const Family& family : unknown_families()) rows.push_back(&family);
  return rows;
}

bool is_code_read(std::string_view model_type) { return !has_word(kUnread, model_type); }

std::string_view name_of(Encoding encoding) noexcept {
  switch (encoding) {
    case Encoding::kRope:
    case Encoding::kImageRope:
    case Encoding::kVideoRope:
    case Encoding::kWindowRope:
      return "rope";
    case Encoding::kPatchRope:
      return PatchRope::name;
    case Encoding::kLearned:
    case Encoding::kPatches:
      return "learned";
    case Encoding::kSinusoidal:
      return "sinusoidal";
    case Encoding::kNone:
      return "none";
    case Encoding::kAlibi:
    case Encoding::kAlibiOfQuotient:
      return "alibi";
    case Encoding::kT5:
      return "t5";
    case Encoding::kDeberta:
      return "deberta";
    case Encoding::kShaw:
    case Encoding::kShawValues:
      return "shaw";
    case Encoding::kTransformerXl:
      return "transformer-xl";
    case Encoding::kRelativeLogits:
      return "relative-logits";
    case Encoding::kForgetGate:
      return "forget-gate";
    case Encoding::kDecomposed:
    case Encoding::kDecomposedWhole:
      return "decomposed";
    case Encoding::kLogCpb:
      return "log-cpb";
    case Encoding::kSwin:
      return "swin";
    default:
      return "named, not computed";
  }
}

std::vector<std::string_view> known_model_types() {
  std::vector<std::string_view> names;
  for (const std::span<const Family> rows : family_tables()) {
    for (const Family& family : rows) {
      for_words(family.types, [&](std::string_view word) {
        if (!word.starts_with('=')) names.push_back(word);
        return true;
      });
    }
  }
  return names;
}

}  // namespace posenc::models

namespace posenc {

std::vector<ModelType> model_types() {
  std::vector<std::string_view> names = models::known_model_types();
  for (const std::string_view type : models::class_types()) names.push_back(type);
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<ModelType> types;
  for (const std::string_view name : names) {
    const std::vector<const models::Family*> rows = models::families_of(name);
    types.push_back({name, rows.empty() ? "parts" : models::name_of(rows.front()->encoding)});
  }
  return types;
}

}  // namespace posenc
