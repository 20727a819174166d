#pragma once

// What the threads of attention_sm90 share: a block's memory, the row blocks it works on, and the copies that fill it.

#include "attention/cuda/band.cuh"
#include "attention/cuda/hopper.cuh"

namespace posenc::attend::cuda {
namespace {

constexpr int kStages = 2;  // tiles of k and v in flight
constexpr int kPanel = 64;  // a row of 128 bytes, the widest swizzle, holds 64 numbers: tiles are stored as panels
constexpr float kLog2e = 1.4426950408889634f;
constexpr float kLn2 = 0.6931471805599453f;
constexpr float kMostGrowth = POSENC_F16 ? 15 : 32;  // weights are at most two to this power: f16 ends at 65504
constexpr float kLowest = -0x1p126f;                 // the maximum of a row of which nothing was visible yet

constexpr int kKind = POSENC_BIAS;
constexpr bool kBoth = POSENC_BOTH != 0, kPacked = POSENC_PACKED != 0;

constexpr int kRotators = 3;     // warps that rotate q
constexpr int kRotatedRows = 8;  // per warp at a time

constexpr int kFeatures = POSENC_FEATURES, kValues = POSENC_VALUES;
constexpr int kKeys = key_tile_of(kFeatures);  // per tile
constexpr int kRowBlocks = row_blocks_of(kFeatures);

constexpr bool kSlopesByProduct = kKind == kSlopeBias && adds_slopes_by_product(kFeatures);

// A row block of one head.
struct Work {
  int bh, block;
};
// Where the sequence of a row block begins in the tensors, and its band.
struct Sequence {
  int first_query, first_key;
  Band band;
};
// Heads are grouped so that their K and V fit in the L2 cache; within a group the longest row blocks come first.
__device__ __forceinline__ Work decode(int item, const ForwardParams& p) {
  const int per_group = p.group * p.row_blocks, g = item / per_group, r = item - g * per_group;
  const int size = (p.group < p.batch_heads - g * p.group ? p.group : p.batch_heads - g * p.group);
  return {g * p.group + r % size, kPacked ? r / size : p.row_blocks - 1 - r / size};
}
// Of packed sequences, the block is at first one of the list: replaces it by the block of its sequence.
__device__ __forceinline__ Sequence sequence_of(Work& w, const ForwardParams& p) {
  if constexpr (!kPacked) return {0, 0, p.band};
  const PackedBlock at = p.packed[w.block];
  w.block = at.block;
  return {at.first_query, at.first_key, p.band.of(at.queries, at.keys)};
}

struct alignas(1024) Shared {
  std::uint16_t q[kRowBlocks][kFeatures / kPanel][kRowTile][kPanel];
  std::uint16_t k[kStages][kFeatures / kPanel][kKeys][kPanel];
  std::uint16_t v[kStages][kValues / kPanel][kKeys][kPanel];
  std::uint16_t columns[1][kSlopesByProduct ? kKeys : 0]
                       [kPanel];  // the sixteen features of k, at the start of a panel
  // The bias by distance of two row blocks; or cosines and sines, twice kRotatedRows rows for each rotator.
  alignas(16) float table[kKind == kRotation ? 2 * kRotators : 2]
                         [kKind == kRotation ? kRotatedRows * kFeatures : kTableSize];
  int item[2];  // the row block that Q and the table belong to; -1 ends the block
  // kPacked: the sequences and blocks of the last four row blocks. Two of them may be in use, and two be requested.
  Sequence sequence[4];
  Work work[4];
  std::uint64_t q_full[2], q_ready[2], q_empty[2], k_full[kStages], k_empty[kStages], v_full[kStages],
      v_empty[kStages], waves_full[2 * kRotators];
};

#define POSENC_AT(member, slot)                               \
  (base + std::uint32_t(__builtin_offsetof(Shared, member)) + \
   std::uint32_t(sizeof(Shared::member[0])) * static_cast<std::uint32_t>(slot))

template <int kSize> struct Ring {  // position in a ring of buffers
  int slot = 0;
  std::uint32_t phase = 0;
  __device__ __forceinline__ void next() {
    if (++slot == kSize) slot = 0, phase ^= 1;
  }
};

// Row n of the columns: n three times, then zeros; 32 bytes, as the copy engine swizzles them.
[[maybe_unused]] __device__ __forceinline__ void write_columns(std::uint32_t base) {
  const int n = static_cast<int>(kernels::cuda::thread());
  if (n < kKeys) {
    const std::uint32_t numbers[4] = {pack(float(n), float(n)), pack(float(n), 0), 0, 0}, zeros[4] = {0, 0, 0, 0};
    const std::uint32_t row = POSENC_AT(columns, 0) + static_cast<std::uint32_t>(n * 128);
    store_four(row + static_cast<std::uint32_t>((n & 7) << 4), numbers);
    store_four(row + static_cast<std::uint32_t>((1 ^ (n & 7)) << 4), zeros);
  }
  show_to_products();
}

// One thread: requests work and starts the copies.
__device__ __forceinline__ void produce(Shared& sm, std::uint32_t base, const ForwardParams& p,
                                        const TensorMap& q_map, const TensorMap& k_map, const TensorMap& v_map) {
  constexpr std::uint32_t kTableBytes = kKind == kDistanceBias ? kTableSize * 4 : 0;
  const int items = p.batch_heads * p.row_blocks;
  Ring<kRowBlocks> q;
  Ring<kStages> kv;
  int requested = 0;
  // Requests the q of a row block, or signals that none is left.
  const auto ask_for_rows = [&](int item) {
    barrier_wait(POSENC_AT(q_empty, q.slot), q.phase ^ 1);
    if (item >= items) {
      sm.item[q.slot] = -1;
      barrier_arrive(POSENC_AT(q_full, q.slot));
      return;
    }
    Work w = decode(item, p);
    const Sequence its = sequence_of(w, p);
    const int b = w.bh / p.heads, h = w.bh - b * p.heads;
    sm.item[q.slot] = item;
    if constexpr (kPacked) sm.sequence[requested & 3] = its, sm.work[requested & 3] = w, ++requested;
    barrier_expect(POSENC_AT(q_full, q.slot), kRowTile * kFeatures * 2 + kTableBytes);
    copy_tile(POSENC_AT(q, q.slot), &q_map, POSENC_AT(q_full, q.slot), its.first_query + w.block * kRowTile, h, b);
    if constexpr (kKind == kDistanceBias)
      copy_bytes(POSENC_AT(table, q.slot), p.bias + h * kTableSize, kTableBytes, POSENC_AT(q_full, q.slot));
    q.next();
  };
  int item = __nvvm_atom_add_gen_i(p.counter, 1);
  ask_for_rows(item);
  while (item < items) {
    const int next = __nvvm_atom_add_gen_i(p.counter, 1);
    Work w = decode(item, p);
    const Sequence its = sequence_of(w, p);
    const int b = w.bh / p.heads, key_head = (w.bh - b * p.heads) / (p.heads / p.key_heads);
    const TileRange tiles = key_tiles<kRowTile, kKeys>(its.band, w.block * kRowTile);
    // The next rows are requested after these tiles. If they are to be rotated, they are requested when work on these
    // rows begins, that is, when the first tile has made room for a third.
    const int last = kKind == kRotation ? larger_of(tiles.last - kStages, tiles.first) : tiles.first;
    for (int j = tiles.last; j >= tiles.first; --j, kv.next()) {
      barrier_wait(POSENC_AT(k_empty, kv.slot), kv.phase ^ 1);
      barrier_expect(POSENC_AT(k_full, kv.slot), kKeys * kFeatures * 2);
      copy_tile(POSENC_AT(k, kv.slot), &k_map, POSENC_AT(k_full, kv.slot), its.first_key + j * kKeys, key_head, b);
      barrier_wait(POSENC_AT(v_empty, kv.slot), kv.phase ^ 1);
      barrier_expect(POSENC_AT(v_full, kv.slot), kKeys * kValues * 2);
      copy_tile(POSENC_AT(v, kv.slot), &v_map, POSENC_AT(v_full, kv.slot), its.first_key + j * kKeys, key_head, b);
      if (j == last) ask_for_rows(next);
    }
    item = next;
  }
  if (__nvvm_atom_add_gen_i(p.counter + 1, 1) ==
      static_cast<int>(kernels::cuda::blocks()) - 1) {  // the last block out resets the counters
    p.counter[0] = 0;
    p.counter[1] = 0;
  }
}

}  // namespace
}  // namespace posenc::attend::cuda
