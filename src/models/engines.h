#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace posenc::models {

/// The input of a rule.
struct RuleInput {
  const Model& model;
  const LayerGroup& group;
  std::int64_t length = 0;  ///< tokens in the sequence
};

/// What an engine makes of a scheme: everything that its rules may change.
struct EngineScheme {
  Scheme scheme;
  PrepareOptions prepare;
  std::vector<std::int64_t> positions;  ///< of the probed tokens, ascending
  double magnitude_factor = 1.0;        ///< applied to cosines and sines
  bool has_bf16_table = false;          ///< cosines and sines are stored as bf16
  bool leaves_unclaimed = false;        ///< pairs that no section claims are not rotated
  bool is_absolute_bf16 = false;        ///< a bias that depends only on the key's position, rounded to bf16
  std::vector<double> slopes = {};      ///< instead of the scheme's own
  std::optional<Temperature> temperature = {};
};
using Change = void (*)(EngineScheme&, const RuleInput&);

/// Something that engines do differently.
struct Subject {
  std::string_view name, title, sentence;
  bool (*concerns)(const RuleInput&);
  std::string_view about = "";  ///< the engine whose difference it is; left out where that is not compared
};
std::span<const Subject> subjects() noexcept;

/// What some engines do about a subject. Without a change to apply, they reject such models.
struct EngineRule {
  std::string_view subject;
  std::string_view engine;
  std::string_view what;
  Change change;
  std::string_view source;
  std::string_view since = "";   ///< first day on which it holds, as 2026-05-19; "": unknown, or always
  std::string_view before = "";  ///< what the engine did before
};
std::span<const EngineRule> engine_rules() noexcept;

/// The version of an engine in which its rules were read.
struct EngineVersion {
  std::string_view engine, version, date;
};
std::span<const EngineVersion> engine_versions() noexcept;

}  // namespace posenc::models
