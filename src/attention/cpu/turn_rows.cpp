#include "attention/cpu/turn_rows.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/turn_rows.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

#ifndef POSENC_TURN_ROWS_ONCE
#define POSENC_TURN_ROWS_ONCE
namespace posenc::attend::cpu {

// A block of one row: pairs are apart by half of it, or stand side by side.
struct RowBlock {
  const float* from;
  float* to;  // `from` only where both have the same layout
  const float *cosines, *sines;
  std::int64_t pairs;
  bool reads_neighbours, writes_neighbours;
};

}  // namespace posenc::attend::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// (a, b) → (a·c − b·s, b·c + a·s), each product and sum rounded, as rotate does.
HWY_INLINE void turn_block(const RowBlock& block) {
  const hn::ScalableTag<float> d;
  const auto n = static_cast<std::int64_t>(hn::Lanes(d));
  const std::int64_t pairs = block.pairs;
  std::int64_t i = 0;
  for (; i + n <= pairs; i += n) {
    auto a = hn::Zero(d), b = a;
    if (block.reads_neighbours) {
      hn::LoadInterleaved2(d, block.from + 2 * i, a, b);
    } else {
      a = hn::LoadU(d, block.from + i);
      b = hn::LoadU(d, block.from + pairs + i);
    }
    const auto c = hn::LoadU(d, block.cosines + i), s = hn::LoadU(d, block.sines + i);
    const auto x = hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), y = hn::Add(hn::Mul(b, c), hn::Mul(a, s));
    if (block.writes_neighbours) {
      hn::StoreInterleaved2(x, y, d, block.to + 2 * i);
    } else {
      hn::StoreU(x, d, block.to + i);
      hn::StoreU(y, d, block.to + pairs + i);
    }
  }
  for (; i < pairs; ++i) {
    const float a = block.from[block.reads_neighbours ? 2 * i : i];
    const float b = block.from[block.reads_neighbours ? 2 * i + 1 : pairs + i];
    const float c = block.cosines[i], s = block.sines[i];
    block.to[block.writes_neighbours ? 2 * i : i] = a * c - b * s;
    block.to[block.writes_neighbours ? 2 * i + 1 : pairs + i] = b * c + a * s;
  }
}

void turn_tokens(const Turning& turning, std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t stride,
                 float* rows) {
  const std::int64_t blocks = turning.form->blocks, pairs = turning.pairs / blocks;
  const PairPlacement places = placement_of(turning.form->layout, pairs);
  const bool in_place = places.read == places.write;
  std::vector<float> scratch(in_place ? 0 : static_cast<std::size_t>(2 * pairs));
  const float* turns = turning.turns + b * turning.batch_stride + begin * 2 * turning.pairs;
  for (std::int64_t t = begin; t < end; ++t, rows += stride, turns += 2 * turning.pairs) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      float* const at = rows + turning.first + block * 2 * pairs;
      const float* const cosines = turns + block * pairs;
      turn_block({at, in_place ? at : scratch.data(), cosines, cosines + turning.pairs, pairs, places.read.step == 2,
                  places.write.step == 2});
      if (!in_place) std::copy(scratch.begin(), scratch.end(), at);
    }
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {

HWY_EXPORT(turn_tokens);

void turn_rows(const Turning& turning, std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t stride,
               float* rows) {
  HWY_DYNAMIC_DISPATCH(turn_tokens)(turning, b, begin, end, stride, rows);
}

}  // namespace posenc::attend::cpu
#endif
