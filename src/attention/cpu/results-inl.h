// Writes the results of a block of queries: O = accumulator / l, and logsumexp = m + log l; for code that is compiled once
// per SIMD target.

#if defined(POSENC_RESULTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POSENC_RESULTS_INL_H
#undef POSENC_RESULTS_INL_H
#else
#define POSENC_RESULTS_INL_H
#endif

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "attention/cpu/block-inl.h"
#include "attention/cpu/pack-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Writes sums / row_sum for up to one vector of queries, as rows.
template <class Products> void finish_rows(Block& block, std::int64_t first, std::int64_t count) {
  const std::int64_t width = width_of<Products>(), features = block.job.v.features;
  const std::int64_t panel = (first - block.begin) / width, lane = (first - block.begin) % width;
  const float* const sums = block.sums_of(panel) + lane;
  const float scale = block.job.value_scales.of(block.key_head());
  HWY_ALIGN float by[kMostLanes] = {};
  for (std::int64_t i = 0; i < lanes(); ++i) {
    const float total = block.row_sum[first - block.begin + i];
    by[i] = total == 0.0f ? 0.0f : scale / total;
  }
  columns_as_rows(sums, width, by, features, block.results.data());
  for (std::int64_t i = 0; i < count; ++i) {  // 0 without a visible key, whatever the sums
    float* const row = block.results.data() + i * features;
    if (by[i] == 0.0f) std::fill(row, row + features, 0.0f);
  }
}

template <class Products> void write_results(Block& block) {
  const std::int64_t features = block.job.v.features;
  kernels::with_type(block.job.out.type, [&](auto kind) HWY_ATTR {
    using T = decltype(kind);
    for (std::int64_t i = block.begin; i < block.end; ++i) {
      const std::int64_t lane = (i - block.begin) % lanes();
      if (lane == 0) finish_rows<Products>(block, i, std::min(lanes(), block.end - i));
      const float* const row = block.results.data() + lane * features;
      T* out = block.job.out.template row<T>(block.b, block.h, i);
      std::int64_t f = 0;
      if constexpr (!std::is_same_v<T, double>) {
        if (block.job.out.feature_stride == 1) {
          auto* const to = reinterpret_cast<typename Products::template Stored<T>*>(out);
          for (; f + lanes() <= features; f += lanes()) convert::store_as(DF(), hn::LoadU(DF(), row + f), to + f);
        }
      }
      for (; f < features; ++f) {
        out[f * block.job.out.feature_stride] = numerics::narrow<T>(static_cast<double>(row[f]));
      }
      if (block.job.logsumexp.data == nullptr) continue;
      const float total = block.row_sum[i - block.begin];
      const double sum = std::log2(static_cast<double>(total));  // −inf without a visible key
      const auto largest = static_cast<double>(block.row_max[i - block.begin]);
      *block.job.logsumexp.template row<float>(block.b, block.h, i) =
          static_cast<float>(total == 0.0f ? sum : (largest + sum) / kLog2E);
    }
  });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
