#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/diagnosis.h"
#include "posenc/scheme.h"
#include "posenc/tensor.h"

namespace posenc {

enum class Agreement : std::uint8_t {
  kAgrees,
  kUpToQuery,  ///< a bias that differs by a constant per query, which the softmax removes (BLOOM, MPT)
  /// A rotation with its features at other places: scores are the same if queries and keys are both rotated so
  /// (DeepSeek rotated in place).
  kUpToPermutation,
  kDiffers,
  kInconclusive,  ///< no difference was found, but a known mistake would not have been seen in these tensors
};
/// "agrees", "agrees-up-to-query", "agrees-up-to-permutation", "differs", "inconclusive".
std::string_view name_of(Agreement agreement) noexcept;

struct CheckOptions {
  /// The positions of the tokens, [axes, sequence]; for a bias, of the queries. Empty: consecutive from
  /// `first_position`; if there are fewer queries than keys, the queries are the last tokens.
  std::span<const std::int64_t> positions = {};
  /// For a bias: the positions of the keys, [axes, keys]. Empty: those of the queries if there are as many, otherwise
  /// consecutive.
  std::span<const std::int64_t> keys = {};
  int axes = 1;
  std::int64_t first_position = 0;
  bool is_causal = false;        ///< for a bias: compare only keys at or before their query
  ConstTensorView weights = {};  ///< the caller's trained table, if the scheme has one
  double tolerance = 0;          ///< 0: default_tolerance of the less precise type
  /// Tokens in the whole sequence, for scalings that depend on it (dynamic, longrope). 0: up to the last position.
  std::int64_t length = 0;
};

/// The default tolerance, relative to the size of what is rounded: f64 1e-12, f32 2e-6, f16 2e-3, bf16 1.6e-2.
double default_tolerance(DataType type) noexcept;

struct FirstDifference {
  std::vector<std::int64_t> index;
  double expected = 0, got = 0;
};

/// A known mistake, or another convention, that a port may have instead of the expected one.
struct Alternative {
  std::string name;       ///< "no llama3 scaling"
  double difference = 0;  ///< the largest that it makes here, in units of what is certain to be seen
  /// It only rounds positions, frequencies or angles to 16 bits: what matters far out, and does not show near position 0.
  bool is_rounding = false;
};

/// Tokens in which every known mistake would be seen, whatever their values: consecutive on each axis. For a bias: keys.
struct DecidingTokens {
  std::int64_t tokens = 0;
  std::vector<std::int64_t> first_positions;  ///< on each axis
};

struct CheckResult {
  Agreement agreement = Agreement::kDiffers;
  Numerics numerics = Numerics::kExact;  ///< the kind of angles (or slopes) with which it agrees
  double largest_difference = 0;
  double largest_change = 0;  ///< the largest change that the scheme itself makes; 0: none at these positions
  double tolerance = 0;
  std::int64_t masked = 0;  ///< scores that were not compared
  std::optional<FirstDifference> first = {};
  Diagnosis diagnosis = {};              ///< if it differs: what was applied instead
  std::vector<std::string> advice = {};  ///< if it differs: what to change, one sentence each
  /// If only some heads (along the axis before the sequence; or else sequences of a batch) or some tokens differ and the
  /// others agree: which, and the same in words. The diagnosis is then theirs.
  std::vector<std::int64_t> heads = {}, tokens = {};
  std::string where = {};                     ///< "heads 3 and 7 differ, the other 6 agree"
  std::vector<Alternative> excluded = {};     ///< if it does not differ: what these tensors rule out
  std::vector<Alternative> unseen = {};       ///< if inconclusive: what they cannot rule out
  std::string reason = {};                    ///< if inconclusive: one sentence, with what would decide
  std::vector<DecidingTokens> deciding = {};  ///< if inconclusive: any of these would decide
  bool is_float32_enough = false;             ///< if inconclusive: the same tokens in float32 would decide
  /// The 16-bit type that all values are of, if the tensors are float32 or float64 (`.float()`): they are compared as such.
  std::optional<DataType> values_type = {};
};

/// Checks whether `after` equals the scheme applied to `before`, element by element. The float32 angles of Hugging Face
/// and ggml are accepted as correct.
///   rotations and additions: both are [..., sequence, features]
///   biases: both are scores before the softmax, [queries, keys] of one head, [heads, queries, keys] or
///     [batch, heads, queries, keys]; `after` is `before` + bias. A score that is −infinity, or below half of the
///     type's lowest number or −1e8, is masked: it is skipped if the key is after the query, or if `before` is masked
///     as well.
/// No difference is an agreement only if every known mistake (a field of the scheme that is wrong, positions that are off,
/// angles in 16 bits …) would have made one in these tensors, with their type, positions and values.
/// Each element may differ by `tolerance` times the norm of its pair (rotations) or the largest of element, expected
/// element and what is added.
/// Throws: Error for shapes, types, positions and schemes that are invalid, for `before` that is not finite, and for
///   schemes that need queries and keys (Shaw, DeBERTa).
CheckResult check(const Scheme& scheme, ConstTensorView before, ConstTensorView after,
                  const CheckOptions& options = {});

}  // namespace posenc
