#include "models/class_names.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "formats/excerpt.h"
#include "models/classes.h"
#include "models/families.h"

namespace posenc::models {
namespace {

// How transformers ends the names of its classes (d56c55bf, models/auto/modeling_auto.py), the longest first.
constexpr auto kClassEndings = std::to_array<std::string_view>(
    {"ForConditionalGeneration", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering",
     "ForImageClassification", "ForCausalLM", "ForMaskedLM", "LMHeadModel", "ForPreTraining", "EncoderModel",
     "Model"});

// Classes whose names do not follow their type: vLLM a014e35f, model_executor/models/registry.py.
struct OddClass {
  std::string_view name, type;
};
constexpr auto kOddClasses = std::to_array<OddClass>({
    {"MiniMaxM3SparseForConditionalGeneration", "minimax_m3_vl"},
    {"MiniMaxM3SparseForCausalLM", "minimax_m3_vl_text"},
    {"GPT2LMHeadModel", "gpt2"},
    {"T5ForConditionalGeneration", "t5"},
});

// Letters and digits alone, small: Qwen2_5_VL and qwen2_5_vl alike.
std::string letters_of(std::string_view name) {
  std::string text;
  for (const char one : name) {
    if (one >= 'A' && one <= 'Z') text += static_cast<char>(one - 'A' + 'a');
    if ((one >= 'a' && one <= 'z') || (one >= '0' && one <= '9')) text += one;
  }
  return text;
}

std::string known_type(std::string_view wanted) {
  std::vector<std::string_view> types = known_model_types();
  for (const std::string_view type : class_types()) types.push_back(type);
  const auto at =
      std::find_if(types.begin(), types.end(), [&](std::string_view type) { return letters_of(type) == wanted; });
  return at == types.end() ? "" : std::string(*at);
}

std::string type_named(std::string_view name) {
  for (const OddClass& one : kOddClasses) {
    if (one.name == name) return std::string(one.type);
  }
  for (const std::string_view ending : kClassEndings) {
    if (!name.ends_with(ending) || name.size() == ending.size()) continue;
    const std::string stem = letters_of(name.substr(0, name.size() - ending.size()));
    const std::string type = known_type(stem);
    // of a model made of parts, the class of its text has a type of its own
    const bool is_text = ending == "ForCausalLM" && families_of(type).empty();
    const std::string text = is_text ? known_type(stem + "text") : "";
    return text.empty() ? type : text;
  }
  return "";
}

}  // namespace

NamedClass class_in(const Json& config) {
  const auto* const names = config.find<Json::Array>("architectures");
  if (names == nullptr || names->empty()) return {};
  const auto* const name = names->front().as<std::string>();
  if (name == nullptr) return {};
  return {excerpt(*name), type_named(*name)};
}

}  // namespace posenc::models
