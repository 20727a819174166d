#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc {

// Claims about schemes, tested numerically. Every bound follows from the number format alone, and none is fitted: u = 2^-53
// is half a unit in the last place of a double near 1, A the largest value of the vectors, d their width.

/// A property of a scheme. `rows` are the vectors that it adds or, for rotations, the cosines and sines of a position.
/// Each property is worded so that true is the desirable outcome.
enum class Property : std::uint8_t {
  kUnique,           ///< no two rows are the same: smallest distance between two, in f32 as they are added; above 0
  kBounded,          ///< no value exceeds the form's amplitude at any position: at most A
  kConsistent,       ///< a position has bit-identical values in every sequence; at most 0 values that differ
  kAnyLength,        ///< a longer sequence has values as well: the largest supported length
  kLinearShift,      ///< row(p + k) = M_k · row(p), one M_k for all p: largest residual; at most 10·u·A
  kDotByDistance,    ///< row(m)·row(n) is a function of m − n: largest spread at one distance, or from the closed
                     ///< form where there is one; at most 8·d·u·A²
  kMonotone,         ///< a closer position never scores lower: the largest gain of a farther one; at most that
                     ///< same rounding
  kRelative,         ///< attention's score is a function of m − n: largest spread at one distance, |q| = |k| = 1
  kSeesOrder,        ///< Att(ΠX) ≠ Π·Att(X): largest difference; above attention's own error
  kSeesOrderCausal,  ///< the same under a causal mask
  kResolvable,       ///< norm of a step of one relative to a token; at least 2^-9, the rounding of bf16
  kVaried,           ///< steps are not all the same vector: distance from the first; above rounding
  kSmooth,           ///< adjacent rows are close: their largest distance relative to the rms distance of two rows; at
                     ///< most 1
};

/// How a property is described, wherever it is shown.
struct PropertyCard {
  Property property;
  std::string_view name;       ///< "linear-shift": in JSON
  std::string_view heading;    ///< at most 9 letters: over a column
  std::string_view statement;  ///< the claim, in one line
  std::string_view measured;   ///< what the number is
};
/// Every property, in the order of the enumeration.
std::span<const PropertyCard> property_cards() noexcept;
const PropertyCard& card_of(Property property) noexcept;
std::string_view name_of(Property property) noexcept;

enum class Outcome : std::uint8_t { kHolds, kFails, kDoesNotApply };
/// What is expected of a scheme (src/properties/claims.cpp); kFails: that the property does not hold.
enum class Claim : std::uint8_t { kNone, kHolds, kFails };
enum class BoundSense : std::uint8_t { kAtMost, kAtLeast, kAbove };
/// "holds", "fails", "does-not-apply"; "none", "holds", "fails"; "at-most", "at-least", "above".
std::string_view name_of(Outcome outcome) noexcept;
std::string_view name_of(Claim claim) noexcept;
std::string_view name_of(BoundSense comparison) noexcept;

/// A further number, in addition to the decisive one, such as the two distances of a counterexample.
struct Detail {
  std::string_view name;
  double value = 0;
};

/// The result of testing one property.
struct Finding {
  Property property = Property::kUnique;
  Outcome outcome = Outcome::kDoesNotApply;
  Claim claim = Claim::kNone;
  double measured = std::numeric_limits<double>::quiet_NaN();
  double bound = std::numeric_limits<double>::quiet_NaN();
  BoundSense comparison = BoundSense::kAtMost;
  Numerics numerics = Numerics::kExact;
  std::int64_t length = 0;   ///< measured over the positions 0 to length − 1
  std::int64_t samples = 0;  ///< rows, pairs or permutations that were examined
  std::string meaning;       ///< one sentence
  std::vector<Detail> details = {};
};
/// Whether the result is as expected: false if a property fails that should hold, or holds though it should not.
bool is_as_claimed(const Finding& finding) noexcept;

struct ProveOptions {
  /// Positions 0 … length − 1. If there are too many to examine, those at both ends are taken.
  std::int64_t length = 1024;
  std::int64_t seed = 1;  ///< for random tables instead of trained ones, and for tokens, queries and keys
  Numerics numerics = Numerics::kExact;
  /// The trained tables, if there are any (see PrepareOptions); the caller keeps ownership.
  ConstTensorView weights = {}, key_weights = {}, value_weights = {};
};

/// A scheme prepared for measuring: its form, and the trained numbers that the form refers to, drawn uniformly from
/// [−1, 1) if none were given.
struct Trial {
  std::optional<Scheme> scheme = {};  ///< empty: the trial was made from a form
  Form form = {};
  std::int64_t length = 0;          ///< as requested, or shorter if the form supports less
  bool has_random_weights = false;  ///< trained numbers were drawn
  ProveOptions options = {};
  std::vector<double> weights = {}, key_weights = {}, value_weights = {};

  Trial() = default;
  Trial(Trial&&) = default;
  Trial& operator=(Trial&&) = default;
};
/// Throws: Error if a field of the scheme is invalid, or the length is not from 2 to 2^53.
Trial make_trial(const Scheme& scheme, const ProveOptions& options = {});
/// Any form. The tables that it refers to must outlive the trial.
Trial make_trial(const Form& form, const ProveOptions& options = {});

/// Every scheme with its default fields, except that the width, if any, is 64: enough for every property.
std::vector<Scheme> schemes_to_prove();
/// The same for one scheme: sets the width, and keeps all other fields.
Scheme for_proving(Scheme scheme);

/// Measures one property.
Finding measure(Property property, const Trial& trial);
/// All of them, in order.
std::vector<Finding> prove(const Scheme& scheme, const ProveOptions& options = {});

/// The property that depends on angles, measured with exact angles and with the float32 angles of engines: kRelative for a
/// rotation, kDotByDistance for waves; empty for schemes without angles. Nothing is expected of float32.
std::vector<Finding> compare_numerics(const Scheme& scheme, const ProveOptions& options = {});

/// The work that a scheme adds for one token in one head: counted from its form, not timed. Tables that depend only on
/// the position (cosines and sines, rows, biases by distance) count as precomputed.
///   additions: one addition per feature, one number read for each
///   rotations: 4 products and 2 sums per pair, for the query and for the key; a cosine and a sine read per pair, twice if
///              queries and keys have their own (xPos)
///   biases, for each key: ALiBi a product and a sum; a table by distance one sum and one number read; vectors by
///              distance a dot product each; FIRE its network; a forget gate a difference and a sum; CoPE a gate, a
///              running sum and an interpolation, and once the products with its table
struct TokenCost {
  std::int64_t operations = 0;  ///< sums and products; an exponential or a division counts as one
  std::int64_t numbers = 0;     ///< read in addition to q, k and v
  std::int64_t parameters = 0;  ///< trained numbers, for all heads together, without those given as fields
};
struct CostOptions {
  std::int64_t keys = 64;      ///< that the token attends to
  std::int64_t features = 64;  ///< per head, if the scheme does not determine it
};
/// Throws: Error if a field of the scheme is invalid.
TokenCost cost_per_token(const Scheme& scheme, const CostOptions& options = {});

// --- the measurements behind the properties ---------------------------------------------------------------------

/// The largest supported length: the form covers positions 0 … reach − 1, limited by the rows of a table, the distances of
/// a map, or the range of growth; 2^53 if unlimited.
std::int64_t reach_of(const Form& form) noexcept;

/// M_k of row(p + k) = M_k · row(p).
struct ShiftMap {
  std::int64_t by = 0;
  std::int64_t width = 0;
  std::vector<double> matrix = {};  ///< [width, width]; empty if the width is above `widest`
  double residual = 0;              ///< largest |row(p + k) − M_k row(p)| (root mean square if M_k was fitted)
  double bound = 0;                 ///< what rounding allows
  bool is_fitted = false;           ///< fitted by least squares, because the form has no pairs of sine and cosine
  std::int64_t rank = 0;            ///< of the rows; the width for pairs
  std::int64_t rows = 0;            ///< the number of rows examined
};
struct ShiftOptions {
  std::int64_t length = 512;
  std::int64_t widest = 64;
};
/// For pairs of sine and cosine, each pair rotates by an angle; for other rows, the best matrix by least squares over all
/// positions. The rows of a rotation are its cosines, then its sines.
/// Throws: Error for a bias or no form, a shift below 0, positions of several axes.
ShiftMap shift_matrix(const Form& form, std::int64_t by, const ShiftOptions& options = {});

/// The dot products of all pairs of rows that are `offset` apart.
struct DotProducts {
  std::vector<std::int64_t> offset;  ///< n − m, one number for each axis
  std::int64_t pairs = 0;
  double least = 0, most = 0;
  double closed_form = std::numeric_limits<double>::quiet_NaN();  ///< A²·Σ cos(ω_i·offset), if there are pairs
};
/// Sorted by offset; for long sequences, pairs from both ends.
/// Throws: Error for a form without rows.
std::vector<DotProducts> dot_by_distance(const Form& form, std::int64_t length);

/// ‖Att(PX) − P·Att(X)‖∞ for random tokens X, projections and permutations P.
struct Equivariance {
  double difference = 0;
  double bound = 0;  ///< attention's own error, twice: 4e-6 · max|v|, growing with the scores
  std::int64_t tokens = 0;
  std::int64_t permutations = 0;
};
struct EquivarianceOptions {
  bool causal = false;
  std::int64_t tokens = 16;
  std::int64_t permutations = 8;
  std::int64_t seed = 1;
};
/// Measured with actual attention in f32: an Addition is added to X before q, k and v are computed; other forms act inside.
Equivariance equivariance(const Form& form, const EquivarianceOptions& options = {});

}  // namespace posenc
