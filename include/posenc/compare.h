#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/model.h"

namespace posenc {

/// What one engine does where engines differ, and how far it is from the first engine of the comparison.
struct EngineAnswer {
  std::string_view engine = {};   ///< "hf", "vllm", "llama.cpp" …
  std::string_view what = {};     ///< its behaviour, in a few words
  std::string_view source = {};   ///< URL of its code, or of a thread that documents the behaviour
  std::string_view version = {};  ///< the version that was consulted; "" for the mathematics
  std::string_view date = {};     ///< of that version, e.g. 2026-08-22
  std::string_view since = {};    ///< the date since which this applies; "": unknown, or always
  bool is_able = true;            ///< false: it rejects such a model
  double angle = 0;               ///< largest difference between two rotation angles, in radians, up to π
  double wave = 0;                ///< largest difference of a cosine or sine, including its magnitude
  /// Largest difference of a score of the last token: for a rotation relative to |q||k|, for vectors that are the same
  /// in all pairs; for a bias absolute.
  double score = 0;
  bool differs = false;  ///< by more than the tolerance
};

/// One aspect in which engines differ, for the layers of a model that it affects.
struct EngineTopic {
  std::string_view name = {};      ///< "dynamic-ntk", "yarn-magnitude" …
  std::string_view title = {};     ///< a heading
  std::string_view sentence = {};  ///< what it is about, in one sentence
  bool is_rotation = true;         ///< false: a bias, which has no angle and no wave
  std::string layers = {};         ///< "0-31"; "" if the file does not list them
  std::string layer_type = {};
  bool differs = false;  ///< at least one engine differs
  std::vector<EngineAnswer> engines = {};
  bool is_compared() const;  ///< at least two engines can run such a model
};

struct EngineComparison {
  std::int64_t length = 0;
  std::vector<EngineTopic> topics = {};  ///< those that affect this model and at least two of the engines
  std::int64_t compared() const;         ///< the number of topics in which at least two engines were compared
  /// Whether something was compared and nothing differs. Engines that reject the model are not compared.
  bool agrees() const;
};

struct CompareOptions {
  std::span<const std::string_view> engines = {};  ///< empty: default_engines()
  std::int64_t length = 0;                         ///< tokens in the sequence; 0: the longest the model supports
  /// What counts as a difference, relative to the magnitude of a cosine (for a score, twice that). The default is the
  /// rounding of bfloat16.
  double tolerance = 0x1p-8;
};

/// Where engines would compute different results for a model, and by how much. Differences are computed by applying both
/// behaviours at positions spread over the length. What engines do comes from a table of facts, each with its source.
/// Throws: Error for an unknown engine, fewer than two, and a length outside 1 to 2^40.
EngineComparison compare_engines(const Model& model, const CompareOptions& options = {});

/// A change in an engine's behaviour, with its date.
struct EngineChange {
  std::string_view date = {};  ///< 2026-05-19
  std::string_view engine = {}, topic = {}, title = {};
  std::string_view now = {}, before = {};
  std::string_view source = {};
};

/// The changes on this date or later, newest first; if a model is given, only those that affect it.
/// Throws: Error if the date is not of the form 2026, 2026-05 or 2026-05-19.
std::vector<EngineChange> engine_changes(std::string_view since, const Model* model = nullptr);

/// "hf", "vllm", "llama.cpp", "ctranslate2".
std::span<const std::string_view> default_engines() noexcept;
/// All engines in the table; "exact" is the mathematics itself.
std::vector<std::string_view> known_engines();

}  // namespace posenc
