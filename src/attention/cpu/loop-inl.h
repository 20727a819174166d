// The tiles of FlashAttention's forward pass (forward.cpp), for code that is compiled once per SIMD target. What multiplies
// is `Products`, one struct for each unit that can (products/), with memory of its own for q, k, v and weights:
//
//   kVectors                    vectors of queries in a row of a tile: 3 or 1
//   kStep                       keys are multiplied with values in whole steps
//   kKeptRise                   a row maximum that is exceeded by less is kept
//   kDefersScale                scores lack the factor tile.factor
//   kOverlaps                   multiplies while weights are computed: has more functions, in overlap-inl.h
//   Stored<T>                   how results of type T are stored
//   takes(job, bias)            whether it can compute this
//   sizes_of(job)               of blocks
//   load_queries(block), load_keys(block)
//   score(block, tile)          S = Q Kᵀ, and a few rows around it to fill groups
//   weigh(block, tile, base)    P = 2^(S − base), added to row_sum
//   add_values(block, tile)     O += P V
//   weight(block, j, i)         an element of P
//   values                      V as rows of f32, if values_are_finite(block) returned false
//   before_rescaling(block, panel)   the row maximum is about to change

#if defined(POSENC_LOOP_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_LOOP_INL_H
#undef POSENC_LOOP_INL_H
#else
#define POSENC_LOOP_INL_H
#endif

#include <algorithm>
#include <limits>

#include "attention/cpu/overlap-inl.h"
#include "attention/cpu/results-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

template <class Products> void attend_tile(Block& block, Products& products, Tile tile, const PanelRange& key_range) {
  HWY_ALIGN float base[kMostWidth];
  products.score(block, tile);
  const bool adds_products = prepare_tile(block, products, tile, key_range, base);
  products.weigh(block, tile, base);
  if (block.bias.value_rows > 0) add_row_weights(block, tile);
  if (adds_products) {
    products.add_values(block, tile);
  } else {
    add_seen_values(block, products, tile);
  }
}

template <class Products> void attend_in_order(Block& block, Products& products, const QueryPanels& panels) {
  const auto [begin, end] = panels.keys;
  const std::int64_t key_blocks = end > begin ? (end - begin + block.keys - 1) / block.keys : 0;
  for (std::int64_t at = 0; at < key_blocks; ++at) {
    block.first_key = begin + (block.bias.counts_gates ? key_blocks - 1 - at : at) * block.keys;
    block.last_key = std::min(block.first_key + block.keys, end);
    products.load_keys(block);
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      const Tile tile = panels.tile(block, panel, block.first_key);
      if (tile.begin < tile.end) attend_tile(block, products, tile, panels.ranges[panel]);
    }
  }
  for (std::int64_t panel = 0; panel < panels.count && block.bias.value_rows > 0; ++panel) {
    add_value_vectors(block, panel);
  }
}

template <class Products> void attend_block(Block& block, Products& products) {
  products.load_queries(block);
  clear_sums(block);
  const QueryPanels panels(block);
  if constexpr (Products::kOverlaps) {
    attend_overlapped(block, products, panels);
  } else {
    attend_in_order(block, products, panels);
  }
  write_results<Products>(block);
}

// Blocks of queries `begin` to `end`, counted across heads and batch.
template <class Products>
void attend_blocks(const AttentionJob& job, const ScoreBias& bias, std::int64_t begin, std::int64_t end) {
  Block block(job, bias, Products::sizes_of(job));
  Products products(block, end - begin > 1);
  const std::int64_t per_head = (job.q.sequence + block.queries - 1) / block.queries;
  for (std::int64_t at = begin; at < end; ++at) {
    block.b = at / per_head / job.q.heads;
    block.h = at / per_head % job.q.heads;
    block.begin = at % per_head * block.queries;
    block.end = std::min(block.begin + block.queries, job.q.sequence);
    attend_block(block, products);
  }
}

// Takes the memory that attend_blocks takes, for a plan, which counts it.
template <class Products> void take_block_memory(const AttentionJob& job, const ScoreBias& bias) {
  const Block block(job, bias, Products::sizes_of(job));
  const Products products(block, true);
  kernels::take_and_give(rotation_scratch(job));
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
