#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "posenc/forms.h"
#include "posenc/frequency.h"
#include "terms/tokens.h"

namespace posenc::terms {

/// The tables that bind() replaces; without data: the form keeps its own.
struct Tables {
  ConstTensorView weights, key_weights, value_weights;
};
/// Vectors that a term multiplies with q, k and weights, each [rows, features] or [heads, rows, features]; without data:
/// none. `offsets`: the shape of what is added to queries before.
struct VectorTables {
  ConstTensorView queries = {}, keys = {}, values = {};
  Extents offsets = {};
};
/// The work of a term for one query: sums and products, and numbers read in addition to q, k and v.
struct Cost {
  std::int64_t operations = 0, numbers = 0;
};
struct CostSizes {
  std::int64_t keys, features;
};
/// Heads first … first + count − 1.
struct HeadRange {
  std::int64_t first, count;
};

/// Everything that is special about one kind of bias. Specialised in src/terms/KIND/KIND.h, for every kind in the list
/// of forms.h; what a kind leaves out is as in TermDefaults. `heads` is always that of the bias.
///
///   name                          "slopes": for errors of engines that have no kernel for it, and for claims of properties
///   check(verb, source, heads)    throws an Error for numbers that do not fit together
///   some_heads(source, heads, range)   the part that belongs to a range of heads
///   element(source, heads, at)    what is added to a score, in double: the definition
///   cost(source, sizes)
///   tiles(source, tokens, extents)   if it has SIMD code for tiles of scores: what that reads (terms/tiles.h), or nothing
template <class Kind> struct Term;

struct TermDefaults {
  /// Why only attention can add it, and not bias(): it depends on more than positions. Empty: bias() can.
  static constexpr std::string_view only_attention = {};
  /// Whether it depends on the tokens between key and query.
  static constexpr bool reads_tokens_between = false;
  /// Whether element() is all that it adds. Otherwise engines ask for it by name (attention/content_terms.h).
  static constexpr bool is_in_elements = true;
  /// Whether it is a function of head and distance alone, on one axis, given by value_at(source, heads, h, distance).
  /// Then add_gradient_at(source, distance, ds, sums) stands beside add_gradient.
  static constexpr bool is_of_distance(const auto&) { return false; }

  /// Positions must be below this, and not negative; kPositionLimit: any position.
  static std::int64_t length(const auto&) { return kPositionLimit; }
  /// Calls visit(axes) for each list of distance maps, one map per position axis.
  static void each_map(const auto&, const auto&) {}

  /// What attention needs beside q, k and v; what multiplies its scale; and the factor of products with vectors.
  static BiasInputs inputs(const auto&) { return {}; }
  static double softmax_factor(const auto&) { return 1.0; }
  static double vector_scale(const auto&, double /*scale*/) { return 1.0; }
  static VectorTables vectors(const auto&, std::int64_t /*heads*/) { return {}; }
  /// The features that a query and a key must have; 0: any number.
  static std::int64_t features(const auto&) { return 0; }
  /// Throws an Error if the vectors do not fit q and v.
  static void check_features(std::string_view, const auto&, std::int64_t, std::int64_t) {}
  /// The same without what it adds to values.
  static auto of_scores(const auto& source) { return source; }

  /// The caller's table that is read in place on a GPU too.
  static ConstTensorView weights(const auto&) { return {}; }
  /// Replaces the trained tables.
  static void bind(auto&, const Tables&) { refuse_tables(); }
  [[noreturn]] static void refuse_tables();

  /// The shape of all trained parameters; rank 0: none, or vectors, which have their own gradients.
  static Extents parameters(const auto&, std::int64_t /*heads*/) { return {}; }
  /// How many of them dS of one head is added to. Parameters shared by heads are collected for each head.
  static std::int64_t head_parameters(const auto&, std::int64_t /*heads*/) { return 0; }
  /// Adds the gradients of one head's parameters for one score, whose own gradient is ds.
  static void add_gradient(const auto&, std::int64_t, const Score&, double, double*) {}
  static void add_gradient_at(const auto&, std::int64_t, double, double*) {}
  /// Parameter `index` of a dense array of that shape, from sums [heads, head_parameters]; here [rows, heads].
  static double gradient(const auto& /*source*/, std::int64_t heads, const double* sums, std::int64_t in_head,
                         std::int64_t index) {
    return sums[index % heads * in_head + index / heads];
  }
};

}  // namespace posenc::terms
