#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "posenc/exercise.h"
#include "posenc/random.h"

namespace posenc::lessons {

/// Random choices that depend on the seed alone.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : random_(seed) {}
  /// From `least` to `most`, both included.
  std::int64_t between(std::int64_t least, std::int64_t most);
  template <class T> T one_of(const std::vector<T>& list) {
    return list[static_cast<std::size_t>(between(0, static_cast<std::int64_t>(list.size()) - 1))];
  }
  /// A number with this many decimals, as it will be shown: k / 10^decimals.
  double decimal(std::int64_t least, std::int64_t most, int decimals);

 private:
  Random random_;
};

/// An exercise as it is written down, before it is known which mistakes can be told from the answer.
struct Draft {
  std::string prompt, hint, working, command = {};
  std::vector<std::pair<std::string, double>> given = {};
  double answer = 0;
  int decimals = 3;
  bool whole = false;
  std::vector<Mistake> mistakes = {};

  /// give("width", 4, "position", 1): numbers of the prompt under their names.
  void give() {}
  template <class T, class... More> void give(const char* name, T value, More... more) {
    given.emplace_back(name, static_cast<double>(value));
    give(more...);
  }
  void mistake(std::string name, std::string because, double value) {
    mistakes.push_back({std::move(name), std::move(because), value});
  }
};

/// "to 3 decimals", "to the nearest whole number".
std::string asked_for(int decimals);
/// Up to 6 significant digits, as people write numbers: 0.01, 464.159, 12.
std::string plain(double value);
/// With decimals, negative numbers in brackets where they follow an operator.
std::string in_brackets(double value, int decimals);

/// Decimals that show `digits` significant digits of a value.
int decimals_for(double value, int digits);

// One function for each kind, by topic.
Draft draft_pe_value(Draw& draw);
Draft draft_token_plus_position(Draw& draw);
Draft draft_dot_product(Draw& draw);
Draft draft_frequency(Draw& draw);
Draft draft_wavelength(Draw& draw);
Draft draft_angle(Draw& draw);
Draft draft_shift(Draw& draw);

Draft draft_rope_turn(Draw& draw);
Draft draft_rope_score(Draw& draw);
Draft draft_linear_angle(Draw& draw);
Draft draft_ntk_slowdown(Draw& draw);
Draft draft_yarn_magnitude(Draw& draw);
Draft draft_llama3_slowdown(Draw& draw);

Draft draft_alibi_bias(Draw& draw);
Draft draft_t5_bucket(Draw& draw);
Draft draft_kerple_bias(Draw& draw);
Draft draft_softmax_weight(Draw& draw);
Draft draft_table_size(Draw& draw);

}  // namespace posenc::lessons
