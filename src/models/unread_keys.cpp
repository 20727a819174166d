#include "models/unread_keys.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "formats/excerpt.h"

namespace posenc::models {
namespace {

// Parts of the names of keys that are about position.
constexpr auto kPositionWords =
    std::to_array<std::string_view>({"rope", "rotary", "alibi", "theta", "position_embedding_type", "yarn"});
constexpr std::string_view kDualChunk = "dual_chunk_attention_config";

bool is_about_position(std::string_view key) {
  return std::any_of(kPositionWords.begin(), kPositionWords.end(),
                     [&](std::string_view word) { return key.find(word) != std::string_view::npos; });
}

// A value that says nothing: null, false, or the plain form of a table.
bool is_silent(const Json& value) {
  const auto* const name = value.as<std::string>();
  const auto* const is_on = value.as<bool>();
  return value.as<std::nullptr_t>() != nullptr || (is_on != nullptr && !*is_on) ||
         (name != nullptr && *name == "absolute");
}

}  // namespace

void warn_of_unread(const Config& config, std::span<const std::string> read, Remarks& remarks) {
  std::vector<std::string> unread;
  for (const auto& [key, value] : *config.object->as<Json::Object>()) {
    if (!is_about_position(key) || is_silent(value) || std::find(read.begin(), read.end(), key) != read.end())
      continue;
    unread.push_back(excerpt(key));
  }
  if (!unread.empty()) {
    note(remarks.warnings, fmt::format("{}not read, as this family's code does not ask for {}: {}", config.place,
                                       unread.size() == 1 ? "it" : "them", fmt::join(unread, ", ")));
  }
  // SGLang cce0a124, rotary_embedding/rope_variant.py:678 and attention/dual_chunk_flashattention_backend.py; vLLM a014e35f
  // has rotary_embedding/dual_chunk_rope.py and no attention backend for it; transformers d56c55bf and llama.cpp b21e4de7 do
  // not mention it
  const auto dual = is_given(config, kDualChunk) ? nested(config, kDualChunk) : std::nullopt;
  if (!dual) return;
  const auto chunk = integer(*dual, "chunk_size"), local = integer(*dual, "local_size");
  note(remarks.warnings,
       fmt::format(
           "{}{} is not computed{}: SGLang rotates queries once more for keys of other chunks, whose distances it "
           "caps; transformers and llama.cpp ignore the key, and vLLM has no attention for it",
           config.place, kDualChunk,
           chunk && local ? fmt::format(" (chunks of {}, of which {} are local)", *chunk, *local) : ""));
}

}  // namespace posenc::models
