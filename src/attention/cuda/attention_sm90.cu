// Attention for compute capability 9.0, with position inside: out = softmax(scale · q·kᵀ + bias) · v, over the keys
// of a Band: causal or all, with or without a window.
//
// One block per multiprocessor takes row blocks of 128 queries of one head, the longest first. One thread copies
// tiles of q, k and v into rings in shared memory; two warpgroups of 64 rows each compute. The scores of the next
// tile and the sums of the previous one are in flight together, and the softmax of one warpgroup overlaps with the
// products of the other.
//  - The mask is the initial value of the scores, −inf, and only in tiles at an edge of the band.
//  - Slopes are sixteen more features of q and k, of which three hold the key's column (exact, below 256) in k, and the
//    slope in q, as three numbers that add up to it: in smaller heads the multiply-adds of the softmax are the limit. In
//    larger ones slopes are part of the exponent's multiply-add. What is constant along a row cancels. The slope changes
//    its sign on the diagonal: the tiles there start from the difference.
//  - A bias by distance is a table from which the bias far to the left is subtracted, so that far tiles have none on the
//    left and a constant on the right; near tiles start from it as they do from the mask.
//  - If q is rotated, the three warps beside the one that copies do it in shared memory, one row block ahead.
//  - The maximum only guards against overflow: it is the first tile's, and stays until a weight exceeds it 2^32 times
//    (f16: 2^15).
//  - Heads of more than 128 features leave room for one row block of q. It is freed as soon as the last scores are
//    computed, and the next one arrives while the results are written.
// POSENC_BIAS is a BiasKind, POSENC_BOTH 1 if a bias may be needed at distances below 0, else 0, POSENC_FEATURES and
// POSENC_VALUES the features of q and k, and of v, POSENC_F16 1 for f16 and 0 for bf16, POSENC_PACKED 1 for packed
// sequences, else 0.

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

// Rotates eight pairs: adjacent in a and b, or with one number of each in a and the other in b. Rounds as rotate
// does.
template <bool kInterleaved> __device__ __forceinline__ void rotate_pairs(std::uint32_t (&a)[4],
                                                                          std::uint32_t (&b)[4], const float (&c)[8],
                                                                          const float (&s)[8]) {
  float x[8], y[8];
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const std::uint32_t word = kInterleaved ? (n < 4 ? a[n % 4] : b[n % 4]) : a[n / 2];
    const float one = unpack(word, !kInterleaved && n % 2 == 1),
                other = kInterleaved ? unpack(word, true) : unpack(b[n / 2], n % 2 == 1);
    const float oc = one * c[n], ts = other * s[n], tc = other * c[n], os = one * s[n];
    x[n] = oc - ts;
    y[n] = tc + os;
  }
#pragma unroll
  for (int n = 0; n < 4; ++n) {
    a[n] = kInterleaved ? pack(x[n], y[n]) : pack(x[2 * n], x[2 * n + 1]);
    b[n] = kInterleaved ? pack(x[n + 4], y[n + 4]) : pack(y[2 * n], y[2 * n + 1]);
  }
}

// One of three warps: eight rows of q at a time, every third eight of a tile, a quarter of a row per lane. `waves`
// are their cosines and sines, in the order of keep_waves (rotate_vectors.cu).
template <bool kInterleaved>
__device__ __forceinline__ void rotate_rows(std::uint32_t tile, std::uint32_t waves, int lane) {
  const int row = lane / 4, part = lane % 4;
  tile += static_cast<std::uint32_t>(row * 128);
  waves += static_cast<std::uint32_t>(row * kFeatures * 4);
#pragma unroll
  for (int i = 0; i < kFeatures / 64; ++i) {
    const int group = part * (kFeatures / 64) + i;
    // The two 16-byte chunks of a pair, before the swizzle: adjacent, or half a head apart.
    const int chunk = kInterleaved ? 2 * group % 8 : group, panel = kInterleaved ? group / 4 : 0;
    const std::uint32_t one = tile + static_cast<std::uint32_t>(panel * (kRowTile * 128) + ((chunk ^ row) << 4)),
                        other = kInterleaved       ? one ^ 16
                                : kFeatures == 128 ? one + kRowTile * 128
                                                   : one ^ 64;
    std::uint32_t a[4], b[4];
    float c[8], s[8];
    load_four(one, a), load_four(other, b);
    const auto quad = [&](int n) {
      return waves + static_cast<std::uint32_t>((((i * 4 + n) * 4 + part) ^ (row & 1) * 4) * 16);
    };
    load_four(quad(0), c), load_four(quad(1), c + 4), load_four(quad(2), s), load_four(quad(3), s + 4);
    rotate_pairs<kInterleaved>(a, b, c, s);
    store_four(one, a), store_four(other, b);
  }
}

// Rotates every row block of q in place, one row block ahead of the warpgroups that compute. Cosines and sines are
// requested two steps before they are needed.
[[maybe_unused]] __device__ __forceinline__ void rotate_queries(Shared& sm, std::uint32_t base,
                                                                const ForwardParams& p) {
  constexpr std::uint32_t kBytes = kRotatedRows * kFeatures * 4;
  const int lane = static_cast<int>(kernels::cuda::thread() % 32),
            me = from_lane(static_cast<int>(kernels::cuda::thread() / 32), 0) - 1;
  Ring<2> asked, waves;
  for (Ring<kRowBlocks> q;; q.next()) {
    barrier_wait(POSENC_AT(q_full, q.slot), q.phase);
    const int item = sm.item[q.slot];
    if (item >= 0) {
      const float* const from = p.cos_sin + std::int64_t{decode(item, p).block} * (kRowTile * kFeatures);
      const auto ask = [&](int row) {
        if (row >= kRowTile) return;
        if (lane == 0) {
          const std::uint32_t barrier = POSENC_AT(waves_full, 2 * me + asked.slot);
          barrier_expect(barrier, kBytes);
          copy_bytes(POSENC_AT(table, 2 * me + asked.slot), from + row * kFeatures, kBytes, barrier);
        }
        asked.next();
      };
      constexpr int kStep = kRotators * kRotatedRows;
      ask(me * kRotatedRows), ask(me * kRotatedRows + kStep);
#pragma unroll 1
      for (int row = me * kRotatedRows; row < kRowTile; row += kStep, waves.next()) {
        barrier_wait(POSENC_AT(waves_full, 2 * me + waves.slot), waves.phase);
        const std::uint32_t tile = POSENC_AT(q, q.slot) + static_cast<std::uint32_t>(row * 128),
                            here = POSENC_AT(table, 2 * me + waves.slot);
        if (p.is_interleaved != 0) {
          rotate_rows<true>(tile, here, lane);
        } else {
          rotate_rows<false>(tile, here, lane);
        }
        kernels::cuda::sync_warp();  // all have read what is overwritten now
        ask(row + 2 * kStep);
      }
      show_to_products();
    }
    barrier_arrive(POSENC_AT(q_ready, q.slot));
    if (item < 0) return;
  }
}

// One consumer warpgroup: 64 query rows of each row block.
struct Consumer {
  Shared& sm;
  const std::uint32_t base;  // its address
  const ForwardParams& p;
  const int wg, warp, lane;
  const float scale2;  // scale * log2(e): the softmax works in powers of two

  Ring<kRowBlocks> q;
  Ring<kStages> k, v;
  int taken = 0;

  static constexpr int kPart = kValues < 128 ? kValues : 128;  // features of v that one product covers
  static constexpr int kParts = kValues / kPart;
  // A thread holds rows r and r + 8 of its warp's 16. Element 4 n + e of a tile is
  // column 8 n + 2 (lane % 4) + e % 2 of row r + 8 (e / 2).
  float s[kKeys / 2];           // scores, then probabilities
  float o[kParts][kPart / 2];   // output
  std::uint32_t pb[kKeys / 4];  // probabilities as std::uint16_t, in the layout of wgmma's A operand

  struct Rows {  // what belongs to one row block
    int bh, block;
    int taken;                  // kPacked: how many row blocks were taken before
    int row;                    // this thread's first row
    float slope2;               // Alibi: slope * log2(e)
    std::uint32_t slope_parts;  // kSlopesByProduct: this thread's part of the sixteen features of q
    float far, right;  // Distance: the bias far to the left, omitted from all scores; what is added far to the right
    float m[2], l[2];  // the maximum in use, in powers of two, and this thread's part of the sum, per row
  };

  __device__ __forceinline__ const Band& band(const Rows& rows) const {
    return kPacked ? sm.sequence[rows.taken & 3].band : p.band;
  }
  // Waits for the next row block; false when there is none.
  __device__ __forceinline__ bool take(Rows& rows) {
    barrier_wait(kKind == kRotation ? POSENC_AT(q_ready, q.slot) : POSENC_AT(q_full, q.slot), q.phase);
    const int item = sm.item[q.slot];
    if (item < 0) return false;
    rows.taken = kPacked ? taken++ : 0;
    const Work w = kPacked ? sm.work[rows.taken & 3] : decode(item, p);
    rows.bh = w.bh;
    rows.block = w.block;
    rows.row = w.block * kRowTile + wg * 64 + warp * 16 + (lane >> 2);
    if constexpr (kKind == kSlopeBias) rows.slope2 = p.bias[w.bh % p.heads] * kLog2e;
    if constexpr (kSlopesByProduct) {
      const float slope = p.bias[w.bh % p.heads] * reciprocal(p.scale), high = rounded(slope),
                  middle = rounded(slope - high);
      rows.slope_parts = (lane & 3) == 0 ? pack(high, middle) : (lane & 3) == 1 ? pack(slope - high - middle, 0) : 0;
    }
    if constexpr (kKind == kDistanceBias) {
      rows.far = sm.table[q.slot][kTableSize - 1];
      if constexpr (kBoth) rows.right = sm.table[q.slot][0] * scale2;
    }
    return true;
  }

  struct Tile {  // of keys, for this warpgroup's rows
    int col;     // this thread's first
    TileKind kind;
  };
  // The tiles of a row block, from the last to the first.
  __device__ __forceinline__ TileRange tiles_of(const Rows& rows) const {
    return key_tiles<kRowTile, kKeys>(band(rows), rows.block * kRowTile);
  }
  __device__ __forceinline__ Tile tile_of(const Rows& rows, int j) const {
    return {j * kKeys + 2 * (lane & 3),
            kind_of<kKind, kBoth, 64, kKeys>(band(rows), rows.block * kRowTile + wg * 64, j * kKeys)};
  }

  // The initial value of the score accumulator, in units of q.k: near the diagonal, the bias by distance, or what is to
  // be added to slopes right of it; -inf where the mask hides a pair. False if there is nothing to add.
  __device__ __forceinline__ bool init_scores(const Rows& rows, const Tile& tile) {
    const bool is_near = tile.kind.side == Side::kNear;
    if (is_near) {
      const int distance = rows.row + band(rows).origin - tile.col;
      if constexpr (kKind == kDistanceBias) {
        const float* t = &sm.table[q.slot][kTableMiddle + distance];
#pragma unroll
        for (int i = 0; i < kKeys / 2; ++i) s[i] = t[8 * (i / 2 % 2) - (8 * (i / 4) + i % 2)];
      } else {
        const float twice = 2 * p.bias[rows.bh % p.heads] * reciprocal(p.scale), first = float(distance);
#pragma unroll
        for (int i = 0; i < kKeys / 2; ++i)
          s[i] = twice * smaller(first + float(8 * (i / 2 % 2) - (8 * (i / 4) + i % 2)), 0.0f);
      }
    } else if (tile.kind.is_masked) {
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) s[i] = 0;
    }
    if (tile.kind.is_masked) {
      const Columns seen[2] = {visible_keys(band(rows), rows.row, tile.col),
                               visible_keys(band(rows), rows.row + 8, tile.col)};
#pragma unroll
      for (int i = 0; i < kKeys / 2; ++i) {
        const int column = 8 * (i / 4) + i % 2, r = i / 2 % 2;
        if (column < seen[r].first || column > seen[r].last) s[i] = -__builtin_inff();
      }
    }
    return is_near || tile.kind.is_masked;
  }

  // S (+)= Q K^T, asynchronous.
  __device__ __forceinline__ void issue_scores(const Rows& rows, const Tile& tile, bool keep) {
    barrier_wait(POSENC_AT(k_full, k.slot), k.phase);
    const std::uint32_t a = descriptor(POSENC_AT(q, q.slot) + wg * 64 * 128, 16),
                        b = descriptor(POSENC_AT(k, k.slot), 16);
    // What products read from registers must be there before the fence.
    const std::uint32_t slope = rows.slope_parts ^ (tile.kind.side == Side::kRight ? 0x80008000u : 0u);
    std::uint32_t features[4] = {slope, slope, 0, 0};
    if constexpr (kSlopesByProduct) {
      for (std::uint32_t& word : features) hide(word);
    }
    pin(s);
    products_fence();
#pragma unroll
    for (int kk = 0; kk < kFeatures / 16; ++kk) {
      // 32 bytes along the panel, the next panel after 64 features
      const std::uint32_t of_q = (kk / 4) * (kRowTile * 128 / 16) + (kk % 4) * 2,
                          of_k = (kk / 4) * (kKeys * 128 / 16) + (kk % 4) * 2;
      multiply_shared(s, a + of_q, b + of_k, keep || kk > 0);
    }
    if constexpr (kSlopesByProduct) {
      multiply_registers_along(s, features, descriptor(POSENC_AT(columns, 0), 16));
    }
    products_commit();
  }
  // O += P V, asynchronous.
  __device__ __forceinline__ void issue_output() {
    barrier_wait(POSENC_AT(v_full, v.slot), v.phase);
    const std::uint32_t b = descriptor(POSENC_AT(v, v.slot), kKeys * 128);
    for (auto& part : o) pin(part);
    products_fence();
#pragma unroll
    for (int kk = 0; kk < kKeys / 16; ++kk) {
#pragma unroll
      for (int part = 0; part < kParts; ++part) {
        multiply_registers(o[part], pb + 4 * kk, b + (part * (kPart / kPanel) * kKeys + kk * 16) * (128 / 16));
      }
    }
    products_commit();
  }
  __device__ __forceinline__ void release(std::uint32_t bar) {
    if (lane == 0) barrier_arrive(bar);
  }
  __device__ __forceinline__ void scores_done() {
    pin(s);
    release(POSENC_AT(k_empty, k.slot));
    k.next();
    k.slot = from_lane(
        k.slot, 0);  // already the same in all lanes; tells ptxas, which then keeps descriptors in uniform registers
  }
  __device__ __forceinline__ void output_done() {
    for (auto& part : o) pin(part);
    release(POSENC_AT(v_empty, v.slot));
    v.next();
    v.slot = from_lane(v.slot, 0);
  }

  // The bias as the softmax uses it: what this thread's first column adds in each of its rows, and element i's column
  // relative to it. Slopes are relative to the distance of the block's first row; the row's own part is constant along
  // the row and cancels, but it has the other sign right of the diagonal.
  struct Addend {
    float start[2], slope;
  };
  __device__ __forceinline__ Addend addend(const Rows& rows, const Tile& tile) const {
    if constexpr (kKind == kSlopeBias) {
      const int block_row = rows.block * kRowTile;
      const int col = kSlopesByProduct ? tile.col - 2 * (lane & 3) : tile.col;
      const float start = rows.slope2 * float(col - block_row - band(rows).origin);
      if (tile.kind.side != Side::kRight) return {{start, start}, rows.slope2};
      const float twice = 2 * rows.slope2, in_block = float(rows.row - block_row);
      return {{__builtin_fmaf(twice, in_block, -start), __builtin_fmaf(twice, in_block + 8, -start)}, -rows.slope2};
    }
    const float start = kKind == kDistanceBias && kBoth && tile.kind.side == Side::kRight ? rows.right : 0.0f;
    return {{start, start}, 0.0f};
  }
  __device__ __forceinline__ float add(const Addend& addend, int i, float start) const {
    if constexpr (kKind != kSlopeBias || kSlopesByProduct) return start;
    return __builtin_fmaf(addend.slope, float(8 * (i / 4) + i % 2), start);
  }

  // Whether some score is so far above the maximum in use that it must be raised. The maximum only guards against
  // overflow, so it may lag behind, and a bound suffices: this thread's largest score plus the tile's largest bias.
  __device__ __forceinline__ bool outgrown(const Rows& rows, const Addend& bias) const {
    float hi[2] = {s[0], s[2]}, most[2];
#pragma unroll
    for (int i = 0; i < kKeys / 2; i += 2) hi[i / 2 % 2] = larger(hi[i / 2 % 2], larger(s[i], s[i + 1]));
#pragma unroll
    for (int r = 0; r < 2; ++r) most[r] = larger(bias.start[r], add(bias, kKeys / 2 - 1, bias.start[r])) - rows.m[r];
    return any_lane(larger(__builtin_fmaf(hi[0], scale2, most[0]), __builtin_fmaf(hi[1], scale2, most[1])) >
                    kMostGrowth);
  }
  // Raises the maxima to those of the scores; alpha is the factor for the previous sums.
  __device__ __forceinline__ void raise(Rows& rows, const Addend& bias, float (&alpha)[2]) {
    float hi[2] = {rows.m[0], rows.m[1]};
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const int r = i / 2 % 2;
      hi[r] = larger(hi[r], __builtin_fmaf(s[i], scale2, add(bias, i, bias.start[r])));
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      hi[r] = larger(hi[r], from_neighbour(hi[r], 1));
      hi[r] = larger(hi[r], from_neighbour(hi[r], 2));
      alpha[r] = power_of_two(rows.m[r] - hi[r]);
      rows.m[r] = hi[r];
      rows.l[r] *= alpha[r];
    }
  }
  // Scores in s to probabilities exp2(scale2 s + bias - m).
  __device__ __forceinline__ void exponentials(Rows& rows, const Addend& bias) {
    const float start[2] = {bias.start[0] - rows.m[0], bias.start[1] - rows.m[1]};
#pragma unroll
    for (int i = 0; i < kKeys / 2; ++i) {
      const int r = i / 2 % 2;
      s[i] = power_of_two(__builtin_fmaf(s[i], scale2, add(bias, i, start[r])));
      rows.l[r] += s[i];
    }
  }
  __device__ __forceinline__ void first_softmax(Rows& rows, const Tile& tile) {
    float alpha[2];
    rows.m[0] = rows.m[1] = kLowest;
    rows.l[0] = rows.l[1] = 0;
    const Addend bias = addend(rows, tile);
    raise(rows, bias, alpha);
    exponentials(rows, bias);
  }
  // Only after the wgmma that reads the old probabilities is done; otherwise ptxas serializes all of them (C7513).
  __device__ __forceinline__ void convert() {
#pragma unroll
    for (int i = 0; i < kKeys / 4; ++i) pb[i] = pack(s[2 * i], s[2 * i + 1]);
  }

  // One more tile of K: S = Q K_j and O += P V_{j+1} are issued together, and the softmax of S overlaps with P V.
  // kSide: of a plain tile, all of whose pairs are visible; kNear: any tile.
  template <Side kSide> __device__ __forceinline__ void step(Rows& rows, int j) {
    hide(j);
    constexpr bool kPlain = kSide != Side::kNear;
    const Tile tile = kPlain ? Tile{j * kKeys + 2 * (lane & 3), {false, kSide}} : tile_of(rows, j);
    issue_scores(rows, tile, kPlain ? false : init_scores(rows, tile));
    issue_output();
    products_wait<1>();
    scores_done();
    float alpha[2];
    const Addend bias = addend(rows, tile);
    const bool grown = outgrown(rows, bias);
    if (grown) raise(rows, bias, alpha);
    exponentials(rows, bias);
    products_wait<0>();
    output_done();
    convert();
    if (grown) {
#pragma unroll
      for (int i = 0; i < kValues / 2; ++i) o[i / (kPart / 2)][i % (kPart / 2)] *= alpha[i / 2 % 2];
    }
  }

  __device__ __forceinline__ void write(const Rows& rows) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float l = rows.l[r];
      l += from_neighbour(l, 1);
      l += from_neighbour(l, 2);
      const float inv = l > 0 ? reciprocal(l) : 0.0f;  // a query that attends to no key
      const int row = rows.row + 8 * r;
      if (row >= band(rows).queries) continue;
      const int token = (kPacked ? sm.sequence[rows.taken & 3].first_query : 0) + row;
      const int batch = rows.bh / p.heads, head = rows.bh - batch * p.heads;
      std::uint16_t* to = static_cast<std::uint16_t*>(p.out) + batch * p.out_batch + head * p.out_head +
                          token * p.out_token + 2 * (lane & 3);
#pragma unroll
      for (int n = 0; n < kValues / 8; ++n) {
        const float* const from = &o[n / (kPart / 8)][4 * (n % (kPart / 8)) + 2 * r];
        *reinterpret_cast<std::uint32_t*>(to + 8 * n) = pack(from[0] * inv, from[1] * inv);
      }
      if (p.logsumexp != nullptr && (lane & 3) == 0) {
        float shift = 0;  // omitted from the bias because it is constant along the row
        if constexpr (kKind == kSlopeBias) shift = -rows.slope2 * kLn2 * float(row - rows.block * kRowTile);
        if constexpr (kKind == kDistanceBias) shift = rows.far;
        p.logsumexp[batch * p.lse_batch + head * p.lse_head + token * p.lse_token] =
            (rows.m[r] + log_of_two(l)) * kLn2 + shift;
      }
    }
  }
  __device__ __forceinline__ void clear_output() {
#pragma unroll
    for (int i = 0; i < kValues / 2; ++i) o[i / (kPart / 2)][i % (kPart / 2)] = 0;
  }

  // The first tile of a row block, alone or while the last sums of the previous one are in flight.
  template <bool kBeside> __device__ __forceinline__ void start(Rows& rows) {
    const Tile tile = tile_of(rows, tiles_of(rows).last);
    issue_scores(rows, tile, init_scores(rows, tile));
    if constexpr (kBeside) issue_output();
    products_wait<kBeside ? 1 : 0>();
    scores_done();
    first_softmax(rows, tile);
    if constexpr (kBeside) {
      products_wait<0>();
      output_done();
    }
    convert();
  }
  // The other tiles of a row block, from right to left. Runs of plain tiles have loops of their own, for which the
  // assembler finds better code than for one loop; without a bias and with 64 features it is the other way round.
  __device__ __forceinline__ void go_on(Rows& rows) {
    const int query0 = rows.block * kRowTile + wg * 64;
    const TileRange tiles = tiles_of(rows), left = plain_key_tiles<64, kKeys>(band(rows), query0);
    int j = tiles.last - 1;
    if constexpr (kKind == kNoBias && kFeatures == 64) {
#pragma unroll 1
      for (; j >= tiles.first; --j) {
        if (j >= left.first && j <= left.last) {
          step<Side::kLeft>(rows, j);
        } else {
          step<Side::kNear>(rows, j);
        }
      }
      return;
    }
    if constexpr (kBoth) {
      const TileRange right = plain_right_key_tiles<64, kKeys>(band(rows), query0);
      const int first = larger_of(tiles.first, right.first);
#pragma unroll 1
      for (; j >= tiles.first && j > right.last; --j) step<Side::kNear>(rows, j);
#pragma unroll 1
      for (; j >= first; --j) step<Side::kRight>(rows, j);
    }
    const int first = larger_of(tiles.first, left.first);
#pragma unroll 1
    for (; j >= tiles.first && j > left.last; --j) step<Side::kNear>(rows, j);
#pragma unroll 1
    for (; j >= first; --j) step<Side::kLeft>(rows, j);
#pragma unroll 1
    for (; j >= tiles.first; --j) step<Side::kNear>(rows, j);
  }
  __device__ __forceinline__ void free_queries() {
    release(POSENC_AT(q_empty, q.slot));
    q.next();
  }
  __device__ __forceinline__ void finish(const Rows& rows) {
    issue_output();
    products_wait<0>();
    output_done();
    write(rows);
  }

  __device__ __forceinline__ void run() {
    Rows rows;
    if (!take(rows)) return;
    start<false>(rows);
    for (;;) {
      clear_output();
      go_on(rows);
      free_queries();
      Rows next;
      if constexpr (kRowBlocks == 1) {
        finish(rows);
        if (!take(next)) return;
        start<false>(next);
      } else {  // the last P V of these rows overlaps with the first Q K^T of the next
        if (!take(next)) break;
        start<true>(next);
        write(rows);
      }
      rows = next;
    }
    finish(rows);
  }
};

}  // namespace

extern "C" __global__ void __launch_bounds__(384, 1)
    attention_sm90(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                   const __grid_constant__ TensorMap v_map, const __grid_constant__ ForwardParams p) {
  static_assert(sizeof(Shared) + 1024 == forward_shared_bytes(kKind, kFeatures, kValues));
  extern __shared__ std::uint8_t raw[];
  const std::uint32_t base = (shared_address(raw) + 1023) & ~1023u;
  // Moved by addition, so that the compiler still knows that it points to shared memory.
  auto& sm = *reinterpret_cast<Shared*>(raw + (base - shared_address(raw)));
  if (kernels::cuda::thread() == 0) {
    constexpr int kWarps = 8;  // each computing warp signals when it is done with a buffer
    for (int i = 0; i < 2; ++i) {
      barrier_init(POSENC_AT(q_full, i), 1), barrier_init(POSENC_AT(q_empty, i), kWarps);
      barrier_init(POSENC_AT(q_ready, i), 32 * kRotators);
    }
    for (int i = 0; i < 2 * kRotators; ++i) barrier_init(POSENC_AT(waves_full, i), 1);
    for (int i = 0; i < kStages; ++i) {
      barrier_init(POSENC_AT(k_full, i), 1), barrier_init(POSENC_AT(k_empty, i), kWarps);
      barrier_init(POSENC_AT(v_full, i), 1), barrier_init(POSENC_AT(v_empty, i), kWarps);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  if constexpr (kSlopesByProduct) write_columns(base);
  kernels::cuda::sync_block();
  const int role = from_lane(static_cast<int>(kernels::cuda::thread() / 128), 0);
#if POSENC_OVERLAPS
  kernels::cuda::wait_for_grids();
#endif
  // 128 · 40 + 256 · 232 registers, or 128 · 56 + 256 · 224: the whole register file
  constexpr int kForCopies = kKind == kRotation ? 56 : 40, kForProducts = kKind == kRotation ? 224 : 232;
  if (role == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kForCopies));
    if (kernels::cuda::thread() == 0) produce(sm, base, p, q_map, k_map, v_map);
    if constexpr (kKind == kRotation) {
      if (kernels::cuda::thread() >= 32) rotate_queries(sm, base, p);
    }
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kForProducts));
    const int warp = from_lane(static_cast<int>(kernels::cuda::thread() / 32 & 3), 0);
    const int lane = static_cast<int>(kernels::cuda::thread() & 31);
    // With 64 features the multiply-adds of the softmax are the limit, and those that read a uniform register take longer;
    // with 128, registers are.
    const float scale2 = p.scale * kLog2e, own = kFeatures == 64 ? for_each_lane(scale2, lane, p.heads) : scale2;
    Consumer c{sm, base, p, role - 1, warp, lane, own};
    c.run();
  }
}

}  // namespace posenc::attend::cuda
