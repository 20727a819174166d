#pragma once

// What Band says about a tile of scores: which tiles there are, and which of them need a mask or a bias of their own.

#include "attention/cuda/params.h"
#include "kernels/cuda/device.cuh"

namespace posenc::attend::cuda {

__device__ __forceinline__ int smaller_of(int a, int b) { return a < b ? a : b; }
__device__ __forceinline__ int larger_of(int a, int b) { return a > b ? a : b; }

/// Tiles first … last; at least one, even if nothing in it is visible.
struct TileRange {
  int first, last;
};
/// The tiles of kKeys keys that some query of kQueries from query0 on attends to.
template <int kQueries, int kKeys> __device__ __forceinline__ TileRange key_tiles(const Band& b, int query0) {
  const int end = smaller_of(query0 + kQueries, b.queries) - 1;
  const int last = larger_of(smaller_of(end + b.most, b.keys - 1), 0) / kKeys;
  return {smaller_of(larger_of(query0 + b.least, 0) / kKeys, last), last};
}
/// The tiles of kQueries queries of which some attends to a key of kKeys from key0 on.
template <int kQueries, int kKeys> __device__ __forceinline__ TileRange query_tiles(const Band& b, int key0) {
  const int end = smaller_of(key0 + kKeys, b.keys) - 1;
  const int last = larger_of(smaller_of(end - b.least, b.queries - 1), 0) / kQueries;
  return {smaller_of(larger_of(key0 - b.most, 0) / kQueries, last), last};
}

/// ⌊x / kSize⌋ and ⌈x / kSize⌉, also below 0; kSize is a power of two.
template <int kSize> __device__ __forceinline__ int tile_below(int x) { return x >> __builtin_ctz(kSize); }
template <int kSize> __device__ __forceinline__ int tile_above(int x) { return tile_below<kSize>(x + kSize - 1); }
/// Of the key tiles, those that are plain for all of kQueries queries from query0 on: every pair is visible, and so far
/// to the left that a bias by distance is constant (slopes: at a distance of 0 or more). May be empty.
template <int kQueries, int kKeys> __device__ __forceinline__ TileRange plain_key_tiles(const Band& b, int query0) {
  const int most = smaller_of(b.most, b.origin - b.tail);  // of key − query
  return {tile_above<kKeys>(query0 + kQueries - 1 + b.least),
          smaller_of(tile_below<kKeys>(query0 + most - (kKeys - 1)), tile_below<kKeys>(b.keys) - 1)};
}
/// The same far to the right, at distances of −right_tail and below.
template <int kQueries, int kKeys>
__device__ __forceinline__ TileRange plain_right_key_tiles(const Band& b, int query0) {
  return {tile_above<kKeys>(query0 + kQueries - 1 + larger_of(b.least, b.origin + b.right_tail)),
          smaller_of(tile_below<kKeys>(query0 + b.most - (kKeys - 1)), tile_below<kKeys>(b.keys) - 1)};
}
/// plain_key_tiles of the query tiles, for kKeys keys from key0 on.
template <int kQueries, int kKeys> __device__ __forceinline__ TileRange plain_query_tiles(const Band& b, int key0) {
  const int most = smaller_of(b.most, b.origin - b.tail);
  return {key0 + kKeys <= b.keys ? tile_above<kQueries>(key0 + kKeys - 1 - most) : kNever,
          tile_below<kQueries>(key0 - b.least - (kQueries - 1))};
}

/// Where the keys of a tile are, seen from its queries: all so far to the left that a bias by distance is constant
/// (slopes: at distances of 0 and more), all so far to the right, or neither.
enum class Side : int { kLeft, kNear, kRight };
struct TileKind {
  bool is_masked;  // some pair is hidden, and not by the table of a bias by distance
  Side side;
};
/// kKind is a BiasKind. kBoth: some query may attend to keys at distances below 0. If not, those are the keys that are
/// hidden to the right: slopes never change their sign, and a table by distance hides them itself.
template <int kKind, bool kBoth, int kQueries, int kKeys>
__device__ __forceinline__ TileKind kind_of(const Band& b, int query0, int key0) {
  const int low = key0 - query0 - (kQueries - 1), high = key0 + (kKeys - 1) - query0;  // of key − query
  TileKind kind{low < b.least, Side::kLeft};
  if constexpr (kBoth || kKind != kDistanceBias) kind.is_masked |= high > b.most || key0 + kKeys > b.keys;
  if constexpr (kKind == kDistanceBias || (kKind == kSlopeBias && kBoth)) {
    if (b.origin - high < b.tail) kind.side = kBoth && b.origin - low <= -b.right_tail ? Side::kRight : Side::kNear;
  }
  return kind;
}

/// The visible pairs of one row of a tile, as a range of its columns.
struct Columns {
  int first, last;
};
/// One query, and keys from `key` on.
__device__ __forceinline__ Columns visible_keys(const Band& b, int query, int key) {
  return {query + b.least - key, smaller_of(query + b.most, b.keys - 1) - key};
}
/// One key, and queries from `query` on; the rows of queries past the end are zeros.
__device__ __forceinline__ Columns visible_queries(const Band& b, int key, int query) {
  return {key - b.most - query, key < b.keys ? key - b.least - query : -1};
}

}  // namespace posenc::attend::cuda
