#pragma once

// What the threads of attention_backward_sm90 share: a block's memory, the key blocks it works on, and the copies that fill
// it.

#include "attention/cuda/band.cuh"
#include "attention/cuda/hopper.cuh"

namespace posenc::attend::cuda {
namespace {

constexpr int kPanel = 64;
constexpr float kLog2e = 1.4426950408889634f;
constexpr int kFeatures = POSENC_FEATURES, kValues = POSENC_VALUES, kKind = POSENC_BIAS;
constexpr bool kBoth = POSENC_BOTH != 0, kPacked = POSENC_PACKED != 0;
constexpr int kKeys = key_block_of(kFeatures);
// Each of the two warpgroups computes the scores of half of a key block's keys, or of half of a tile's queries.
constexpr bool kSplitsKeys = kKeys == 128;
constexpr int kOwnQueries = kSplitsKeys ? kQueryTile : kQueryTile / 2;
// Whether shared memory has room for a head's bias by distance, and for the sums of its gradient.
constexpr bool kCopiesTable = kKind == kDistanceBias && kSplitsKeys;

// A key block of one key head.
struct Work {
  int batch, key_head, block;
  int first_query, first_key, first_tile;  // of its sequence: in the tensors, and in the padded rows
  TileRange tiles;                         // of queries
  Band band;
};
// Key heads are grouped so that their q, d_out and dq fit in the L2 cache.
__device__ __forceinline__ Work decode(int item, const BackwardParams& p) {
  const int per_group = p.group * p.key_blocks, g = item / per_group, r = item - g * per_group;
  const int size = p.group < p.batch_keys - g * p.group ? p.group : p.batch_keys - g * p.group;
  const int at = g * p.group + r % size, block = r / size, batch = at / p.key_heads;
  Work w{batch, at - batch * p.key_heads, block, 0, 0, 0, {}, p.band};
  if constexpr (kPacked) {
    const PackedBlock its = p.packed[block];
    w.block = its.block, w.first_query = its.first_query, w.first_key = its.first_key, w.first_tile = its.first_tile;
    w.band = p.band.of(its.queries, its.keys);
  }
  w.tiles = query_tiles<kQueryTile, kKeys>(w.band, w.block * kKeys);
  return w;
}

struct alignas(1024) Shared {
  std::uint16_t k[kFeatures / kPanel][kKeys][kPanel];
  std::uint16_t v[kValues / kPanel][kKeys][kPanel];
  std::uint16_t q[kBackwardStages][kFeatures / kPanel][kQueryTile][kPanel];
  std::uint16_t g[kBackwardStages][kValues / kPanel][kQueryTile][kPanel];  // d_out
  std::uint16_t weights[kSplitsKeys ? 0 : kBackwardStages][kKeys][kQueryTile];
  std::uint16_t ds[kBackwardStages][kKeys][kQueryTile];
  alignas(16) float lse[kBackwardStages][kQueryTile];
  alignas(16) float delta[kBackwardStages][kQueryTile];
  alignas(16) float table[1][kSplitsKeys ? kTableSize : 4];
  alignas(16) float part[kCopiesTable ? kDiagonalTasks : 1][8];  // sums along diagonals: see sum_diagonals
  int item[1];   // the key block that k and v belong to; -1 ends the block
  Work work[1];  // the same, if sequences are packed
  alignas(8) std::uint64_t k_full[1], k_empty[1], v_full[1], v_empty[1], t_full[1], t_empty[1];
  std::uint64_t q_full[kBackwardStages], q_empty[kBackwardStages], g_full[kBackwardStages], g_empty[kBackwardStages];
};
static_assert(sizeof(Shared) + 1024 == backward_shared_bytes(kKind, kFeatures, kValues));

#define POSENC_AT(member, slot) \
  (base + std::uint32_t(__builtin_offsetof(Shared, member)) + std::uint32_t(sizeof(Shared::member[0])) * (slot))

template <int kSize> struct Ring {
  int slot = 0;
  std::uint32_t phase = 0;
  __device__ __forceinline__ void next() {
    if (++slot == kSize) slot = 0, phase ^= 1;
  }
};

// The threads that synchronize once dS is in shared memory.
constexpr int kExchange = kKind == kDistanceBias ? 256 + 96 : 256;

__device__ __forceinline__ void produce(Shared& sm, std::uint32_t base, const BackwardParams& p,
                                        const TensorMap& q_map, const TensorMap& k_map, const TensorMap& v_map,
                                        const TensorMap& g_map) {
  const int items = p.batch_keys * p.key_blocks, heads_per_key = p.heads / p.key_heads;
  Ring<1> kv, tables;
  Ring<kBackwardStages> tq, tg;
  int next = __nvvm_atom_add_gen_i(p.counter, 1);
  for (;; kv.next()) {
    const int item = next;
    if (item >= items) break;
    next = __nvvm_atom_add_gen_i(p.counter, 1);
    const Work w = decode(item, p);
    int head = w.key_head * heads_per_key;
    std::int64_t row = ((std::int64_t{w.batch} * p.heads + head) * p.tiles + w.first_tile) * kQueryTile;
    const auto load_q = [&](int i) {
      barrier_wait(POSENC_AT(q_empty, tq.slot), tq.phase ^ 1);
      barrier_expect(POSENC_AT(q_full, tq.slot), kQueryTile * kFeatures * 2 + kQueryTile * 4);
      copy_tile(POSENC_AT(q, tq.slot), &q_map, POSENC_AT(q_full, tq.slot), w.first_query + i * kQueryTile, head,
                w.batch);
      copy_bytes(POSENC_AT(lse, tq.slot), p.neg_lse + row + i * kQueryTile, kQueryTile * 4,
                 POSENC_AT(q_full, tq.slot));
      tq.next();
    };
    const auto load_g = [&](int i) {
      barrier_wait(POSENC_AT(g_empty, tg.slot), tg.phase ^ 1);
      barrier_expect(POSENC_AT(g_full, tg.slot), kQueryTile * kValues * 2 + kQueryTile * 4);
      copy_tile(POSENC_AT(g, tg.slot), &g_map, POSENC_AT(g_full, tg.slot), w.first_query + i * kQueryTile, head,
                w.batch);
      copy_bytes(POSENC_AT(delta, tg.slot), p.delta + row + i * kQueryTile, kQueryTile * 4,
                 POSENC_AT(g_full, tg.slot));
      tg.next();
    };
    const auto load_table = [&] {
      if constexpr (kCopiesTable) {
        barrier_wait(POSENC_AT(t_empty, 0), tables.phase ^ 1);
        barrier_expect(POSENC_AT(t_full, 0), kTableSize * 4);
        copy_bytes(POSENC_AT(table, 0), p.bias + head * kTableSize, kTableSize * 4, POSENC_AT(t_full, 0));
        tables.next();
      }
    };
    barrier_wait(POSENC_AT(v_empty, 0), kv.phase ^ 1);  // v is free one tile before k
    barrier_expect(POSENC_AT(v_full, 0), kKeys * kValues * 2);
    copy_tile(POSENC_AT(v, 0), &v_map, POSENC_AT(v_full, 0), w.first_key + w.block * kKeys, w.key_head, w.batch);
    load_q(w.tiles.first);
    barrier_wait(POSENC_AT(k_empty, 0), kv.phase ^ 1);
    sm.item[0] = item;
    if constexpr (kPacked) sm.work[0] = w;
    barrier_expect(POSENC_AT(k_full, 0), kKeys * kFeatures * 2);
    copy_tile(POSENC_AT(k, 0), &k_map, POSENC_AT(k_full, 0), w.first_key + w.block * kKeys, w.key_head, w.batch);
    load_table();
    load_g(w.tiles.first);
    for (int i = w.tiles.first + 1; i <= w.tiles.last; ++i) load_q(i), load_g(i);
    for (int n = 1; n < heads_per_key; ++n) {
      ++head;
      row += std::int64_t{p.tiles} * kQueryTile;
      load_table();
      for (int i = w.tiles.first; i <= w.tiles.last; ++i) load_q(i), load_g(i);
    }
  }
  barrier_wait(POSENC_AT(k_empty, 0), kv.phase ^ 1);
  sm.item[0] = -1;
  barrier_arrive(POSENC_AT(k_full, 0));
  if (__nvvm_atom_add_gen_i(p.counter + 1, 1) ==
      static_cast<int>(kernels::cuda::blocks()) - 1) {  // the last block out resets the counters
    p.counter[0] = 0;
    p.counter[1] = 0;
  }
}

}  // namespace
}  // namespace posenc::attend::cuda
