#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "posenc/forms.h"
#include "posenc/tensor.h"

namespace posenc {

/// What `prepare` may need, in addition to a scheme's own fields, to make a form.
struct PrepareOptions {
  std::int64_t length = 0;               ///< tokens in the sequence; 0: unknown
  Numerics numerics = Numerics::kExact;  ///< how angles are computed
  Precision precision = {};              ///< the types in which a rotation is computed
  ConstTensorView weights = {};          ///< the caller's trained table, if the scheme has one
  ConstTensorView key_weights = {};      ///< a second table, dotted with keys (DeBERTa)
  ConstTensorView value_weights = {};    ///< a third table, added to values (Shaw)
  /// Positions are fractions: id p means exactly p / denominator. One denominator for all axes, or one per axis; empty:
  /// integer positions. Only for schemes with `takes_fractions` (rope, rope-mixed, sinusoidal).
  std::vector<std::int64_t> denominators = {};
};

// A scheme declares which of these it needs with two optional members next to fields():
//   LengthNeed needs_length() const;
//   TrainedTable trained_table() const;
// A scheme that supports fractional positions has `static constexpr bool takes_fractions = true`.
// A scheme whose trained numbers are fields also has `template <class Draw> bool draw_trained(Draw&& next)`, which fills
// empty fields with numbers from next(), so that untrained schemes can be measured.

/// What a scheme uses PrepareOptions::length for.
enum class LengthNeed : std::uint8_t {
  kNone,
  kDistances,  ///< the form covers the distances 0 to length − 1 (KERPLE, Sandwich)
  kPositions,  ///< it also covers the query positions 0 to length − 1 (FIRE)
  kSequence,   ///< the form depends on the length of the whole sequence (rope's dynamic and longrope scalings)
};

/// An extent that is taken from the caller's table: the number of features of vectors dotted with queries and keys.
inline constexpr std::int64_t kAnyExtent = -1;

/// The shape of the trained table that the caller passes to a scheme (PrepareOptions::weights).
struct TrainedTable {
  struct Axis {
    std::string_view
        name;  ///< the name of the field that holds this extent, if any, so that a file can set the field
    std::int64_t extent = kAnyExtent;
    bool operator==(const Axis&) const = default;
  };
  std::vector<Axis> axes = {};     ///< outermost first; empty: the scheme has no trained table
  bool has_key_weights = false;    ///< there is a second table of this shape (PrepareOptions::key_weights)
  bool has_value_weights = false;  ///< there is one for values, with as many features as they have (value_weights)
  bool is_optional = false;        ///< the scheme can be prepared without it, from its fields or other tables
  bool operator==(const TrainedTable&) const = default;
};

/// The table's shape, with `any` instead of kAnyExtent.
Extents shape_of(const TrainedTable& table, std::int64_t any = kAnyExtent);

/// Whether the table holds vectors whose number of features the caller's table determines.
bool has_vectors(const TrainedTable& table);

// Default values of list fields. They are functions so that files including this header need not compile the
// constructors of std::vector from braces.
std::vector<std::int64_t> grid_of(std::int64_t rows, std::int64_t columns);  ///< {rows, columns}
std::vector<double> list_of(double number);                                  ///< {number}

}  // namespace posenc
