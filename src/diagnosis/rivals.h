#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "diagnosis/expected.h"

namespace posenc::diagnosis {

/// How a pair is turned: right, or by a known mistake.
enum class Turning : std::uint8_t {
  kRight,
  kSwapped,       ///< sine and cosine swapped
  kNoMinus,       ///< rotate_half without its minus: (a cos + b sin, b cos + a sin)
  kOtherCosines,  ///< pairs of one layout with the cosines and sines of the other
};

/// Which positions a port uses in place of the given ones.
enum class Placing : std::uint8_t {
  kGiven,
  kReversed,    ///< the last token has the first position
  kConstant,    ///< every token has the first position
  kCounted,     ///< every axis has the number of the token
  kNoOffset,    ///< of an image, all axes but the first count from 0
  kTransposed,  ///< for a bias: queries and keys swapped
};

/// A known mistake, or another known convention: what a port that differs from the expected scheme in one thing applies.
struct Rival {
  std::string name = {};           ///< "no llama3 scaling"
  std::string from = {}, to = {};  ///< "llama3 scaling", "none": what tensors must tell apart
  std::string change = {};         ///< what to change in such a port, one sentence
  Scheme scheme = {};              ///< what it applies
  int times = 1;                   ///< how often
  std::int64_t shift = 0;          ///< added to every position; of a bias, to those of queries
  Placing placing = Placing::kGiven;
  std::vector<std::size_t> axes = {};    ///< for each axis, the one whose positions it uses; empty: its own
  AngleKind angles = AngleKind::kExact;  ///< in which arithmetic
  Turning turning = Turning::kRight;
  std::vector<double> slopes = {};  ///< of a bias, in place of the scheme's; empty: the scheme's
  /// The scores of queries and keys that are both treated so are the expected ones.
  bool is_equivalent = false;
};

/// What the list of rivals depends on besides the scheme.
struct RivalInputs {
  std::int64_t features = 0, tokens = 0;               // of the tensors
  std::int64_t least_position = 0, last_position = 0;  // of the tokens, on any axis
  std::int64_t rows = 0;                               // of a trained table; 0: no limit to positions
  std::int64_t least_key = 0;                          // position of the first key, of a bias
  bool has_later_keys = true;                          // scores of keys after their query are compared
};

/// Every rival of a scheme that is known here, each different from it.
std::vector<Rival> rivals_of(const Scheme& scheme, const RivalInputs& inputs);
/// Those of rope: fields, scalings, sections, arithmetic.
void add_rope_rivals(const Rope& rope, const RivalInputs& inputs, std::vector<Rival>& list);

/// Where and with what a rival is applied.
struct Surroundings {
  CheckPositions positions = {};
  int axes = 1;
  std::int64_t length = 0;
  ConstTensorView weights = {};
};
/// What a rival makes of `before`, which is dense, and the magnitudes that a tolerance is relative to; for rotations with
/// the leeway of float32 angles.
Expected expected_of(const Rival& rival, const std::vector<double>& before, const Extents& shape,
                     const Surroundings& where);

}  // namespace posenc::diagnosis
