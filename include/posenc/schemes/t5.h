#pragma once

#include <cstdint>
#include <string_view>

#include "posenc/prepare_options.h"

namespace posenc {

/// A trained number for each head and bucket of distances: short distances have a bucket each, longer ones share
/// buckets that widen by a constant factor. The last one starts below max_distance: of 32 and 128, at 113 (encoder: 91).
///
///   bias(h, m, n) = table[bucket(n − m), h]
///
///   bucket = r                                                            for r < E
///            min(B − 1, E + ⌊ln(r/E) / ln(max_distance/E) · (B − E)⌋)     from there on
///
///   r = max(m − n, 0); bidirectional: r = |n − m|, and keys ahead have the upper half of the buckets
///   B: the buckets of one direction;  E = ⌊B/2⌋
///
/// Raffel et al., 2019, "Exploring the Limits of Transfer Learning". T5 does not scale its scores: use a scale of 1 in
/// attention. The boundaries of the buckets are integers, computed exactly once, so that biases need no logarithm.
struct T5 {
  static constexpr std::string_view name = "t5";
  static constexpr std::string_view family = "bias";
  static constexpr std::string_view formula = "score + table[bucket(n-m), h]; buckets widen with distance";
  static constexpr std::string_view used_by = "T5, UMT5, LongT5, MPNet, WavLM";

  std::int64_t heads = 8;
  std::int64_t buckets = 32;
  std::int64_t max_distance = 128;
  bool bidirectional = true;

  template <class Visitor> static void fields(Visitor&& visit) {
    visit("heads", &T5::heads, "attention heads");
    visit("buckets", &T5::buckets, "number of buckets, the rows of the table");
    visit("max_distance", &T5::max_distance, "distances from this one on share the last bucket");
    visit("bidirectional", &T5::bidirectional, "separate buckets for later keys (encoders)");
  }
  TrainedTable trained_table() const;
  bool operator==(const T5&) const = default;
};

/// The table is the caller's: prepare(T5{…}, {.weights = view(table, {buckets, heads})}).
/// Range: heads 1 to 65536; buckets 2 to 8192, bidirectional: even and from 4; max_distance above ⌊B/2⌋, to 2^20.
Bias prepare(const T5& scheme, const PrepareOptions& options = {});

/// The bucket of every distance δ = key − query; needs no table.
DistanceMap buckets_of(const T5& scheme);

}  // namespace posenc
