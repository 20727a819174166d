// Flash-Decoding (Dao et al., 2023): with few queries and many keys, most of the time goes into reading the cache, so
// every key and value is read once, in place. Keys are divided into splits of a fixed size (split-KV). Each split runs
// its own online softmax over key blocks and yields row_max, row_sum and an output accumulator for every query; these
// are merged in the order of the splits, so results do not depend on the number of threads. The query heads that
// share a key head (GQA) share its reads.

#include "attention/cpu/decode/decode.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "attention/cpu/decode/split.h"
#include "kernels/cpu/parallel.h"
#include "posenc/backend.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "attention/cpu/decode/decode.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

// after foreach_target.h, so that they are compiled for each target
#include "attention/cpu/decode/pass-inl.h"
#include "attention/cpu/decode/values-inl.h"
#include "attention/cpu/decode/weigh-inl.h"

HWY_BEFORE_NAMESPACE();
namespace posenc::attend::cpu::HWY_NAMESPACE {

void attend_splits(const AttentionJob& job, const ScoreBias& bias, const SplitRun& run) {
  // keys that no query attends to (past a length, outside a window) are not read
  const KeyRange seen = job.visible_keys(run.b);
  const std::int64_t begin = std::max(run.begin, seen.begin), end = std::min(run.end, seen.end);
  if (begin >= end) return;
  HeadPasses passes(job, bias, run, end);
  for (SplitPass& pass : passes.all) pass.load_queries();
  const std::int64_t block = passes.all.front().block;
  const auto each_block = [&](const auto& visit) HWY_ATTR {
    for (std::int64_t split = 0; split < run.splits(); ++split) {
      const std::int64_t first = run.begin + split * kSplit, last = std::min(first + kSplit, end);
      for (std::int64_t at = std::max(first, begin); at < last; at += block) {
        visit(split, at, std::min(at + block, last));
      }
    }
  };
  if (passes.memory.rows >= kFewRows) {
    each_block([&](std::int64_t split, std::int64_t first, std::int64_t last) HWY_ATTR {
      weigh_block(passes, split, first, last);
      add_block(passes, split, first, last);
    });
    return;
  }
  each_block([&](std::int64_t split, std::int64_t first, std::int64_t last)
                 HWY_ATTR { weigh_block(passes, split, first, last); });
  each_block([&](std::int64_t split, std::int64_t first, std::int64_t last)
                 HWY_ATTR { add_block(passes, split, first, last); });
}

}  // namespace posenc::attend::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace posenc::attend::cpu {
namespace {

HWY_EXPORT(attend_splits);
HWY_EXPORT(take_run_memory);

// The splits that some query attends to, so that the cost of a window depends on its size, and their results.
struct Splits {
  const AttentionJob& job;
  std::int64_t rows = job.group * job.q.sequence, heads = job.q.batch * job.k.heads;
  std::int64_t first = 0, count = 0;
  AlignedVector<SoftmaxState> states;  // [heads, splits, rows]
  AlignedVector<float> sums;           // the same, value features
  AlignedVector<double> row;           // of a result

  // `seen`: of all sequences.
  Splits(const AttentionJob& a_job, const KeyRange& seen) : job(a_job) {
    if (seen.begin < seen.end) {
      first = seen.begin / kSplit;
      count = (seen.end + kSplit - 1) / kSplit - first;
    }
    states.resize(static_cast<std::size_t>(heads * count * rows));
    sums.resize(states.size() * static_cast<std::size_t>(job.v.features));
    row.resize(static_cast<std::size_t>(job.v.features));
  }
  bool heads_inside() const { return has_heads_inside(job, rows); }
  // The most splits of a run, and heads. The scores of several heads are kept for one split.
  std::int64_t of_run() const {
    return rows < kFewRows && !heads_inside() ? std::clamp<std::int64_t>(count, 1, kMostSplits) : 1;
  }
  std::int64_t heads_of_run() const { return heads_inside() ? job.k.heads : 1; }
  // Some splits, from `split` on, of some heads of one sequence.
  SplitRun run(std::int64_t head, std::int64_t some_heads, std::int64_t split, std::int64_t some) {
    const std::int64_t begin = (first + split) * kSplit, state = (head * count + split) * rows;
    return {head / job.k.heads,
            head % job.k.heads,
            begin,
            std::min({begin + some * kSplit, (first + count) * kSplit, job.k.sequence}),
            states.data() + state,
            sums.data() + state * job.v.features,
            some_heads,
            count * rows,
            count * rows * job.v.features};
  }
};

// The keys that queries of any sequence attend to.
KeyRange keys_of_all(const AttentionJob& job) {
  KeyRange all{job.k.sequence, 0, 0};
  for (std::int64_t b = 0; b < job.k.batch; ++b) {
    const KeyRange seen = job.visible_keys(b);
    if (seen.begin >= seen.end) continue;
    all.begin = std::min(all.begin, seen.begin);
    all.end = std::max(all.end, seen.end);
  }
  return all;
}

// numerics::narrow, with fewer instructions: rounding to float32 first changes nothing unless that lies halfway between two
// numbers of T.
template <class T> T rounded(double value) {
  if constexpr (sizeof(T) == 2) {
    constexpr bool kIsF16 = std::is_same_v<T, Half>;
    constexpr std::uint32_t kDropped = kIsF16 ? 13 : 16, kHalf = 1U << (kDropped - 1);
    // normal numbers
    constexpr std::uint32_t kLeast = (kIsF16 ? 113U : 1U) << 23;
    constexpr std::uint32_t kMost = (kIsF16 ? 142U : 254U) << 23;
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
    const std::uint32_t size = bits & 0x7FFFFFFF;
    if (size >= kLeast && size < kMost && size % (2 * kHalf) != kHalf) {
      const std::uint32_t field = ((size + kHalf) >> kDropped) - (kIsF16 ? 112U << 10 : 0U);
      return {static_cast<std::uint16_t>((bits >> 16 & 0x8000) | field)};
    }
  }
  return numerics::narrow<T>(value);
}

// Merges the splits of one row, in order.
void write_row(Splits& splits, std::int64_t head, std::int64_t r) {
  const AttentionJob& job = splits.job;
  const std::int64_t b = head / job.k.heads, h = head % job.k.heads * job.group + r / job.q.sequence,
                     i = r % job.q.sequence, features = job.v.features;
  const auto place = [&](std::int64_t split) {
    return static_cast<std::size_t>((head * splits.count + split) * splits.rows + r);
  };
  const float none = -std::numeric_limits<float>::infinity();
  const float sink = job.sinks == nullptr ? none : static_cast<float>(job.sinks[h] * kLog2E);
  float largest = sink == sink ? sink : none;
  bool is_number = sink == sink;
  for (std::int64_t split = 0; split < splits.count; ++split) {
    const SoftmaxState& state = splits.states[place(split)];
    if (state.row_sum != state.row_sum) is_number = false;
    largest = std::max(largest, state.row_max);
  }
  double* const row = splits.row.data();
  std::fill(row, row + features, 0.0);
  double total = sink == none ? 0.0 : std::exp2(static_cast<double>(sink) - static_cast<double>(largest));
  for (std::int64_t split = 0; split < splits.count; ++split) {
    const SoftmaxState& state = splits.states[place(split)];
    if (state.row_sum == 0.0f) continue;
    const double weight = std::exp2(static_cast<double>(state.row_max) - static_cast<double>(largest));
    total += weight * static_cast<double>(state.row_sum);
    const float* const sums = splits.sums.data() + static_cast<std::int64_t>(place(split)) * features;
    for (std::int64_t f = 0; f < features; ++f) row[f] += weight * static_cast<double>(sums[f]);
  }
  const auto scale = static_cast<double>(job.value_scales.of(head % job.k.heads));
  if (!is_number) total = std::numeric_limits<double>::quiet_NaN();
  kernels::with_type(job.out.type, [&](auto kind) {
    using T = decltype(kind);
    T* out = job.out.row<T>(b, h, i);
    for (std::int64_t f = 0; f < features; ++f) {
      out[f * job.out.feature_stride] = rounded<T>(total == 0 ? 0.0 : row[f] * scale / total);
    }
  });
  if (job.logsumexp.data == nullptr) return;
  *job.logsumexp.row<float>(b, h, i) =
      static_cast<float>(total == 0 ? std::log2(total) : (static_cast<double>(largest) + std::log2(total)) / kLog2E);
}

}  // namespace

bool is_decoding(const AttentionJob& job, const ScoreBias& bias) {
  const std::int64_t rows = job.group * job.q.sequence;
  const bool has_few_rows =
      rows <= kFewDecodeRows || (rows <= kMostDecodeRows && job.q.sequence <= kMostDecodeQueries);
  return has_few_rows && !bias.has_vectors();
}

void decode(const AttentionJob& job, const ScoreBias& bias) {
  Splits splits(job, keys_of_all(job));
  // Long runs of many heads, but enough of them for all threads. A split's result is the same bytes in any run.
  std::int64_t of_run = splits.of_run(), of_heads = splits.heads_of_run();
  const auto runs = [&] { return (splits.count + of_run - 1) / of_run; };
  const auto parts = [&] { return (job.k.heads + of_heads - 1) / of_heads; };  // of the heads of a sequence
  const std::int64_t wanted = threads() > 1 ? 4 * threads() : 1;
  while (of_run > 1 && splits.heads * runs() < wanted) of_run /= 2;
  while (of_heads > 1 && job.k.batch * parts() * runs() < wanted) of_heads = (of_heads + 1) / 2;
  kernels::cpu::parallel_for(job.k.batch * parts() * runs(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t at = begin; at < end; ++at) {
      const std::int64_t part = at / runs(), head = part % parts() * of_heads;
      HWY_DYNAMIC_DISPATCH(attend_splits)
      (job, bias,
       splits.run(part / parts() * job.k.heads + head, std::min(of_heads, job.k.heads - head), at % runs() * of_run,
                  of_run));
    }
  });
  for (std::int64_t head = 0; head < splits.heads; ++head) {
    for (std::int64_t r = 0; r < splits.rows; ++r) write_row(splits, head, r);
  }
}

void count_decode(const AttentionJob& job, const ScoreBias& bias) {
  // windows of other lengths end elsewhere, those of several sequences far from each other
  Splits splits(job, {0, keys_of_all(job).end, 0});
  if (splits.count == 0) return;
  kernels::cpu::parallel_for(1, 1, [&](std::int64_t, std::int64_t) {
    HWY_DYNAMIC_DISPATCH(take_run_memory)(job, bias, splits.run(0, splits.heads_of_run(), 0, splits.of_run()));
  });
}

}  // namespace posenc::attend::cpu
#endif
