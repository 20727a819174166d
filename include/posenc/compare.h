#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace posenc {

/// What one engine does where engines differ, and how far that is from the first one asked for.
struct EngineAnswer {
  std::string_view engine = {};   ///< "hf", "vllm", "llama.cpp" …
  std::string_view what = {};     ///< its way, in a few words
  std::string_view source = {};   ///< public address of its code, or of the thread that says so
  std::string_view version = {};  ///< in which it was read; "" for the mathematics
  std::string_view date = {};     ///< of that version, as 2026-08-22
  std::string_view since = {};    ///< the day from which it holds; "": not known, or always
  bool is_able = true;            ///< false: it refuses such a model
  double angle = 0;               ///< largest angle between two turns, in radians, up to π
  double wave = 0;                ///< largest difference of a cosine or sine, with its magnitude
  /// Largest difference of a score of the last token: of a rotation as a share of |q||k|, for vectors that are alike
  /// in all pairs; of a bias as it is added.
  double score = 0;
  bool differs = false;  ///< by more than the tolerance
};

/// One thing that engines do differently, for the layers of a model that it concerns.
struct EngineTopic {
  std::string_view name = {};      ///< "dynamic-ntk", "yarn-magnitude" …
  std::string_view title = {};     ///< for people
  std::string_view sentence = {};  ///< what it is about, in plain words
  bool is_rotation = true;         ///< false: a bias, which has no angle and no wave
  std::string layers = {};         ///< "0-31"; "" where the file does not say which
  std::string layer_type = {};
  bool differs = false;  ///< one of them does
  std::vector<EngineAnswer> engines = {};
  bool is_compared() const;  ///< two engines at least can run such a model
};

struct EngineComparison {
  std::int64_t length = 0;
  std::vector<EngineTopic> topics = {};  ///< that concern this model and two of its engines at least
  std::int64_t compared() const;         ///< topics in which two engines at least were compared
  /// Something was compared, and nothing differs. Engines that refuse the model are not compared.
  bool agrees() const;
};

struct CompareOptions {
  std::span<const std::string_view> engines = {};  ///< none: default_engines()
  std::int64_t length = 0;                         ///< tokens in the sequence; 0: all that the model can use
  /// What counts as a difference, relative to the size of a cosine with its magnitude, of a score twice that: more
  /// than the rounding of a bfloat16.
  double tolerance = 0x1p-8;
};

/// Where engines would compute different things for a model, and how different. Every size is computed by applying
/// both ways at positions spread over the length. What engines do is a table of facts, each with its source.
/// Throws: Error for an unknown engine, fewer than two, and a length outside 1 to 2^40.
EngineComparison compare_engines(const Model& model, const CompareOptions& options = {});

/// Something that an engine has done differently from a day on.
struct EngineChange {
  std::string_view date = {};  ///< 2026-05-19
  std::string_view engine = {}, topic = {}, title = {};
  std::string_view now = {}, before = {};
  std::string_view source = {};
};

/// What engines changed on this day or later, the newest first; of one model where it is given.
/// Throws: Error where the day is not of the form 2026, 2026-05 or 2026-05-19.
std::vector<EngineChange> engine_changes(std::string_view since, const Model* model = nullptr);

/// "hf", "vllm", "llama.cpp", "ctranslate2".
std::span<const std::string_view> default_engines() noexcept;
/// All that the table knows something of; "exact" is the mathematics itself.
std::vector<std::string_view> known_engines();

}  // namespace posenc
