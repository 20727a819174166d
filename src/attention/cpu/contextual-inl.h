// Contextual positions (CoPE) in a tile of scores, for code that is compiled once per SIMD target. Keys are processed from
// the last to the first, so each query has already counted the gates of all keys after a tile.

#if defined(POSENC_CONTEXTUAL_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_CONTEXTUAL_INL_H
#undef POSENC_CONTEXTUAL_INL_H
#else
#define POSENC_CONTEXTUAL_INL_H
#endif

#include "attention/cpu/block-inl.h"
#include "attention/cpu/exp2-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// σ of a score in units of log 2; 0 for −inf.
HWY_INLINE VF gate_of_score(VF s) {
  const DF d;
  const VF one = hn::Set(d, 1.0f), small = exp2_of_negative(d, hn::Neg(hn::Abs(s)));
  return hn::Div(hn::IfThenElse(hn::Lt(s, hn::Zero(d)), small, one), hn::Add(one, small));
}

// (1 − w) · relative[⌊p⌋] + w · relative[⌈p⌉] for one vector of queries whose count is p = sum + error. Clamped to the last
// row, as is a NaN count, whose score is NaN as well.
HWY_INLINE VF relative_at_count(VF sum, VF error, const float* HWY_RESTRICT relative, std::int64_t width,
                                std::int64_t rows) {
  const DF d;
  const hn::RebindToSigned<DF> di;
  const VF last = hn::Set(d, static_cast<float>(rows - 1)), one = hn::Set(d, 1.0f);
  const auto is_inside = hn::Lt(hn::Add(sum, error), last);
  VF below = hn::Floor(sum);
  VF part = hn::Add(hn::Sub(sum, below), error);  // the error may cross either row
  const auto is_less = hn::Lt(part, hn::Zero(d)), is_more = hn::Ge(part, one);
  below = hn::Sub(hn::Add(below, hn::IfThenElseZero(is_more, one)), hn::IfThenElseZero(is_less, one));
  part = hn::Add(hn::Sub(part, hn::IfThenElseZero(is_more, one)), hn::IfThenElseZero(is_less, one));
  below = hn::IfThenElse(is_inside, hn::Min(hn::Max(below, hn::Zero(d)), last), last);
  part = hn::IfThenElseZero(is_inside, part);
  const VF above = hn::Min(hn::Add(below, one), last);
  const auto step = hn::Set(di, static_cast<std::int32_t>(width));
  const auto at_below = hn::Add(hn::Mul(hn::ConvertTo(di, below), step), hn::Iota(di, 0));
  const auto at_above = hn::Add(hn::Mul(hn::ConvertTo(di, above), step), hn::Iota(di, 0));
  const VF low = hn::GatherIndex(d, relative, at_below), high = hn::GatherIndex(d, relative, at_above);
  return hn::MulAdd(part, hn::Sub(high, low), low);
}

// Adds the contribution of the counted positions to scores that are already masked, and finds the maximum for each
// query.
inline void add_contextual(Block& block, const Tile& tile, float* HWY_RESTRICT tile_max) {
  const DF d;
  const std::int64_t width = block.width, rows = block.bias.query_rows;
  const VF none = hn::Set(d, kNone);
  for (std::int64_t vector = 0; vector < kPanelVectors; ++vector) {
    float* const count = block.content.counts.data() + tile.panel * width;
    float* const lost = block.content.count_errors.data() + tile.panel * width;
    const float* const relative = block.content.relative.data() + tile.panel * rows * width + vector * lanes();
    VF sum = load(count, vector), error = load(lost, vector), most = none;
    if (hn::AllTrue(d, hn::Ge(hn::Add(sum, error), hn::Set(d, static_cast<float>(rows - 1))))) {
      // all have counted past the last row, so keys further away no longer change their position
      const VF last = hn::LoadU(d, relative + (rows - 1) * width);
      for (std::int64_t j = tile.begin; j < tile.end; ++j) {
        float* HWY_RESTRICT s = block.scores.data() + j * width;
        const VF score = hn::Add(load(s, vector), last);
        store(score, s, vector);
        most = hn::Max(most, score);
      }
      store(most, tile_max, vector);
      continue;
    }
    for (std::int64_t j = tile.end - 1; j >= tile.begin; --j) {
      float* HWY_RESTRICT s = block.scores.data() + j * width;
      const VF x = load(s, vector), gate = gate_of_score(x);
      const VF next = hn::Add(sum, gate), back = hn::Sub(next, sum);  // two-sum: the rounding error of the addition
      error = hn::Add(error, hn::Add(hn::Sub(sum, hn::Sub(next, back)), hn::Sub(gate, back)));
      sum = next;
      const VF score =
          hn::IfThenElse(hn::Eq(x, none), none, hn::Add(x, relative_at_count(sum, error, relative, width, rows)));
      store(score, s, vector);
      most = hn::Max(most, score);
    }
    store(sum, count, vector);
    store(error, lost, vector);
    store(most, tile_max, vector);
  }
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
