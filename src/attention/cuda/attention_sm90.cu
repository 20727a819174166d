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

#include "attention/cuda/rotate_queries.cuh"
#include "attention/cuda/row_blocks.cuh"

namespace posenc::attend::cuda {
namespace {

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
      multiply_registers<0>(s, features, descriptor(POSENC_AT(columns, 0), 16));
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
