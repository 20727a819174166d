#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/forms.h"
#include "posenc/tensor.h"

namespace posenc {

/// What a scheme may need to know beyond its own fields before it can become a form.
struct Situation {
  std::int64_t length = 0;               ///< tokens in the sequence now; 0: not said
  Numerics numerics = Numerics::kExact;  ///< which angle is meant
  Precision precision = {};              ///< the types of a rotation
  ConstTensorView weights = {};          ///< the caller's learned table, where the scheme has one
  ConstTensorView key_weights = {};      ///< a second one, of what keys meet (DeBERTa)
  ConstTensorView value_weights = {};    ///< another, of what is added to values (Shaw)
  /// Positions are fractions: p stands for p / denominator, exactly. One for all axes, or one for each; empty: whole
  /// positions. Only for schemes that say `takes_fractions` (rope, sinusoidal).
  std::vector<std::int64_t> denominators = {};
};

// What a scheme needs of it, said by two optional members beside fields():
//   LengthNeed needs_length() const;
//   TrainedTable trained_table() const;
// A scheme whose form can be made for fractions of a position has `static constexpr bool takes_fractions = true`.
// A scheme whose trained numbers are fields offers `template <class Draw> bool draw_trained(Draw&& next)` as well,
// which fills them from next() where they are empty: for measuring a scheme that nobody trained.

/// What Situation::length is to a scheme.
enum class LengthNeed : std::uint8_t {
  kNone,
  kDistances,  ///< the form covers the distances 0 … length − 1 (KERPLE, Sandwich)
  kPositions,  ///< and the positions 0 … length − 1 of queries (FIRE)
  kSequence,   ///< the numbers depend on the length of the whole sequence (rope's dynamic and longrope scalings)
};

/// An extent that the caller's table decides: the features of vectors that meet queries and keys.
inline constexpr std::int64_t kAnyExtent = -1;

/// The trained table that a scheme takes from its caller (Situation::weights).
struct TrainedTable {
  struct Axis {
    std::string_view name;  ///< that of a field where the two have one extent, so that a file can set the field
    std::int64_t extent = kAnyExtent;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes = {};     ///< outermost first; empty: the scheme takes no table
  bool has_key_weights = false;    ///< a second table of this shape (Situation::key_weights)
  bool has_value_weights = false;  ///< another, of as many features as values have (Situation::value_weights)
  bool is_optional = false;        ///< the form can be made without it, from its fields or its other tables
  bool operator==(const TrainedTable&) const = default;
};

/// Its shape, with `any` in place of kAnyExtent.
Extents shape_of(const TrainedTable& table, std::int64_t any = kAnyExtent);

/// Whether it holds vectors, of as many features as the caller's table has.
bool has_vectors(const TrainedTable& table);

// Default lists of schemes, made in a source: braces compile a vector's constructor in every file that includes the header.
std::vector<std::int64_t> grid_of(std::int64_t rows, std::int64_t columns);  ///< {rows, columns}
std::vector<double> list_of(double number);                                  ///< {number}

}  // namespace posenc
