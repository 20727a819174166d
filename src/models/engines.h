#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace posenc::models {

/// What a rule may need to know.
struct Circumstances {
  const Model& model;
  const LayerGroup& group;
  std::int64_t length = 0;  ///< tokens in the sequence
};

/// What an engine makes of a scheme: everything that its rules may change.
struct Treatment {
  Scheme scheme;
  Situation now;
  std::vector<std::int64_t> positions;  ///< of the tokens that are looked at, ascending
  double magnitude_factor = 1.0;        ///< on cosines and sines
  bool has_bf16_table = false;          ///< cosines and sines are stored as bf16
  bool leaves_unclaimed = false;        ///< pairs that no section claims stand still
  bool is_absolute_bf16 = false;        ///< a bias by the position of the key alone, rounded to bf16
  std::vector<double> slopes = {};      ///< instead of the scheme's own
  std::optional<Temperature> temperature = {};
};
using Change = void (*)(Treatment&, const Circumstances&);

/// A thing that engines do differently.
struct Subject {
  std::string_view name, title, sentence;
  bool (*concerns)(const Circumstances&);
};
std::span<const Subject> subjects() noexcept;

/// What some engines do about a subject. No change to apply: they refuse such models.
struct EngineRule {
  std::string_view subject;
  std::string_view engine;
  std::string_view what;
  Change change;
  std::string_view source;
  std::string_view since = "";   ///< the day from which it holds, as 2026-05-19; "": not known, or always
  std::string_view before = "";  ///< what the engine did until then
};
std::span<const EngineRule> engine_rules() noexcept;

/// The version of an engine in which its rules were read.
struct EngineVersion {
  std::string_view engine, version, date;
};
std::span<const EngineVersion> engine_versions() noexcept;

}  // namespace posenc::models
