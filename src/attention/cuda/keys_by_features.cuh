#pragma once

// Key blocks of 64 keys, for more than 128 features: each of the two warpgroups owns half of the features of dk, dv and dq, and
// computes the weights of half of a tile's queries. Both write their P and dS to shared memory, where the other finds them.
//
// Registers of a thread, of 232, with 256 features: dk, dv and dq 64 each and P in 16 bits 8; before there is a dq, s and dp
// have 16 each. With dS in 16 bits beside them, the assembler finds too few. With 192 and 128 features: 48, 32, 48.

#include "attention/cuda/key_weights.cuh"

namespace posenc::attend::cuda {
namespace {

// Half of kCount features: one or two panels and, of three panels, half of the one in the middle.
template <int kCount> struct Half {
  static constexpr int kPanels = kCount / kPanel, kWhole = kPanels / 2, kRest = kPanels % 2 * (kPanel / 2);
  /// The first feature of the whole panels, and of the rest.
  __device__ __forceinline__ static int first_of_whole(int wg) { return wg * (kPanels - kWhole) * kPanel; }
  __device__ __forceinline__ static int first_of_rest(int wg) { return kWhole * kPanel + wg * kRest; }
};

// A warpgroup's half of a tile of 64 rows, from the given row on, as the right factor of products.
template <int kCount> struct HalfTile : Half<kCount> {
  std::uint32_t whole, rest;  // descriptors

  __device__ __forceinline__ HalfTile(std::uint32_t tile, int row, int wg)
      : whole(descriptor(tile + HalfTile::first_of_whole(wg) * 128 + row * 128, 64 * 128)),
        rest(descriptor(tile + HalfTile::kWhole * (64 * 128) + wg * HalfTile::kRest * 2 + row * 128, 64 * 128)) {
    hide(whole), hide(rest);
  }
  // 16 rows further.
  __device__ __forceinline__ void advance() { whole += 16 * 128 / 16, rest += 16 * 128 / 16; }
};

// Sums of 64 rows and a warpgroup's half of the features.
template <int kCount> struct HalfSums : Half<kCount> {
  using Half<kCount>::kWhole, Half<kCount>::kRest;
  float whole[kWhole * kPanel / 2], rest[kRest == 0 ? 1 : kRest / 2];

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (float& x : whole) x = 0;
#pragma unroll
    for (float& x : rest) x = 0;
  }
  __device__ __forceinline__ void pin_all() {
    pin(whole);
    if constexpr (kRest > 0) pin(rest);
  }
  __device__ __forceinline__ void add_registers(const std::uint32_t* a, const HalfTile<kCount>& b) {
    multiply_registers(whole, a, b.whole);
    if constexpr (kRest > 0) multiply_registers(rest, a, b.rest);
  }
  template <int kAcross> __device__ __forceinline__ void add(std::uint32_t a, const HalfTile<kCount>& b) {
    multiply<kAcross, 1>(whole, a, b.whole);
    if constexpr (kRest > 0) multiply<kAcross, 1>(rest, a, b.rest);
  }
  template <int kAcross> __device__ __forceinline__ void set(std::uint32_t a, const HalfTile<kCount>& b) {
    multiply_first<kAcross, 1>(whole, a, b.whole);
    if constexpr (kRest > 0) multiply_first<kAcross, 1>(rest, a, b.rest);
  }
};

struct Consumer : Weights {
  HalfSums<kFeatures> dk;
  HalfSums<kValues> dv;

  __device__ __forceinline__ void clear() { dk.clear(), dv.clear(); }

  // dv += P d_out over this warpgroup's 32 queries, with P in registers.
  __device__ __forceinline__ void issue_own_dv(const std::uint32_t (&pb)[8]) {
    HalfTile<kValues> b(POSENC_AT(g, t.slot), wg * 32, wg);
#pragma unroll
    for (int kk = 0; kk < 2; ++kk, b.advance()) dv.add_registers(pb + 4 * kk, b);
    products_commit();
  }
  // sums += A B over kSteps · 16 queries, from the given one on; A a tile of 64 keys, B one of 64 queries.
  template <int kSteps, int kCount> __device__ __forceinline__ void issue_sums(HalfSums<kCount>& sums,
                                                                               std::uint32_t a_tile,
                                                                               std::uint32_t b_tile, int query) {
    HalfTile<kCount> b(b_tile, query, wg);
    std::uint32_t a = descriptor(a_tile + query * 2, 16);
    hide(a);
#pragma unroll
    for (int kk = 0; kk < kSteps; ++kk, b.advance()) sums.template add<0>(a + kk * 2, b);
    products_commit();
  }
  // dq = dS k.
  __device__ __forceinline__ void issue_dq(HalfSums<kFeatures>& dq) {
    HalfTile<kFeatures> b(POSENC_AT(k, 0), 0, wg);
    std::uint32_t a = descriptor(POSENC_AT(ds, t.slot), 16);
    hide(a);
    dq.set<1>(a, b);
#pragma unroll
    for (int kk = 1; kk < kKeys / 16; ++kk) {
      b.advance();
      dq.add<1>(a + kk * (16 * 128 / 16), b);
    }
    products_commit();
  }
  __device__ __forceinline__ void add_dq(const HalfSums<kFeatures>& dq, int i) {
    const int tile = (kPacked ? sm.work[0].first_tile : 0) + i;
    float* const to =
        p.dq + (std::int64_t{query_head} * p.tiles + tile) * (kFeatures * kQueryTile) + (warp * 32 + lane) * 4;
    const auto add = [](float* eight, const float* x) { add_four(eight, x[0], x[1], x[2], x[3]); };
#pragma unroll
    for (int c = 0; c < Half<kFeatures>::kWhole * 8; ++c)
      add(to + dq.first_of_whole(wg) * kQueryTile + c * 512, dq.whole + 4 * c);
#pragma unroll
    for (int c = 0; c < Half<kFeatures>::kRest / 8; ++c)
      add(to + dq.first_of_rest(wg) * kQueryTile + c * 512, dq.rest + 4 * c);
  }
  // One tile of 64 queries; `last`: v is no longer needed.
  template <bool kPlain> __device__ __forceinline__ void step(int i, bool last) {
    weigh<kPlain>(i, last);
    std::uint32_t pb[8], db[8];
    convert(pb, db);
    share(POSENC_AT(weights, t.slot), pb);
    share(POSENC_AT(ds, t.slot), db);
    show_to_products();
    dv.pin_all(), dk.pin_all();
    products_fence();
    issue_own_dv(pb);
    meet(1, kExchange);
    HalfSums<kFeatures> dq;
    products_fence();
    issue_dq(dq);
    issue_sums<2>(dv, POSENC_AT(weights, t.slot), POSENC_AT(g, t.slot), (1 - wg) * 32);
    issue_sums<4>(dk, POSENC_AT(ds, t.slot), POSENC_AT(q, t.slot), 0);
    products_wait<2>();
    dq.pin_all();
    add_dq(dq, i);
    products_wait<1>();
    dv.pin_all();
    release(POSENC_AT(g_empty, t.slot));
    products_wait<0>();
    dk.pin_all();
    release(POSENC_AT(q_empty, t.slot));
    t.next();
  }

  template <int kCount> __device__ __forceinline__ void write_sums(std::uint16_t* to, std::int64_t token_stride,
                                                                   const HalfSums<kCount>& sums, float scale,
                                                                   int keys) {
    using Its = Half<kCount>;
    write<Its::kWhole * kPanel>(to + Its::first_of_whole(wg), token_stride, sums.whole, scale, keys);
    if constexpr (Its::kRest > 0)
      write<Its::kRest>(to + Its::first_of_rest(wg), token_stride, sums.rest, scale, keys);
  }
  __device__ __forceinline__ void write_keys(std::uint16_t* to, std::int64_t token_stride, int keys) {
    write_sums(to, token_stride, dk, p.scale, keys);
  }
  __device__ __forceinline__ void write_values(std::uint16_t* to, std::int64_t token_stride, int keys) {
    write_sums(to, token_stride, dv, 1.0f, keys);
  }
};

}  // namespace
}  // namespace posenc::attend::cuda
