// Partial attentions over disjoint keys become one, by their logsumexp. Each row is weighed in double and rounded once.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/plan/arguments.h"
#include "kernels/element.h"
#include "posenc/attention.h"
#include "posenc/error.h"
#if POSENC_CPU_BACKEND
#include "kernels/cpu/parallel.h"
#endif

namespace posenc {
namespace {

using namespace attend;
constexpr std::string_view kMerge = "merge";
constexpr double kNoKey = -std::numeric_limits<double>::infinity();

struct MergeJob {
  HeadTensor<void> out, logsumexp;
  HeadTensor<const void> other, other_logsumexp;
};

// One row of a tensor with one feature.
double log_at(const auto& logs, std::int64_t b, std::int64_t h, std::int64_t i) {
  return kernels::with_type(logs.type,
                            [&](auto kind) { return numerics::widen(*logs.template row<decltype(kind)>(b, h, i)); });
}

struct Shares {
  double kept, taken, logsumexp;  // of out, of other, and of both
};
// At least one of the two is not −inf. NaN and +inf make all three NaN.
Shares shares_of(double log, double other_log) {
  const double largest = std::max(log, other_log);
  const double kept = std::exp(log - largest), taken = std::exp(other_log - largest), sum = kept + taken;
  return {kept / sum, taken / sum, largest + std::log(sum)};
}

void merge_row(const MergeJob& job, std::int64_t b, std::int64_t h, std::int64_t i) {
  const double log = log_at(job.logsumexp, b, h, i), other_log = log_at(job.other_logsumexp, b, h, i);
  const bool has_keys = log != kNoKey, has_other_keys = other_log != kNoKey;
  if (has_keys && !has_other_keys && log < std::numeric_limits<double>::infinity()) return;
  Shares shares{0, 0, kNoKey};
  if (has_keys || has_other_keys) shares = shares_of(log, other_log);
  kernels::with_type(job.out.type, [&](auto kind) {
    using T = decltype(kind);
    kernels::with_type(job.other.type, [&](auto other_kind) {
      T* const out = job.out.row<T>(b, h, i);
      const auto* const other = job.other.row<decltype(other_kind)>(b, h, i);
      for (std::int64_t f = 0; f < job.out.features; ++f) {
        T& to = out[f * job.out.feature_stride];
        // a side without a key is not read: it may hold anything
        const double own_part = has_keys ? shares.kept * numerics::widen(to) : 0.0;
        const double other_part =
            has_other_keys ? shares.taken * numerics::widen(other[f * job.other.feature_stride]) : 0.0;
        to = numerics::narrow<T>(own_part + other_part);
      }
    });
  });
  kernels::with_type(job.logsumexp.type, [&](auto kind) {
    using T = decltype(kind);
    *job.logsumexp.row<T>(b, h, i) = numerics::narrow<T>(shares.logsumexp);
  });
}

void check_merged(std::string_view what, const ConstTensorView& view, const Extents& wanted) {
  if (view.device != Device::kHost) {
    raise(fmt::format("merge: {} must be on the host but is on {}", what, name_of(view.device)));
  }
  if (view.shape == wanted) return;
  raise(fmt::format("merge: {} has shape {} but must have {}", what, to_string(view.shape), to_string(wanted)));
}

// [batch, heads, queries], with an axis of one feature.
template <class Void>
HeadTensor<Void> logs_of(std::string_view what, BasicTensorView<Void> logs, const Extents& rows) {
  check_merged(what, logs, rows);
  if (logs.type != DataType::kF32 && logs.type != DataType::kF64) {
    raise(fmt::format("merge: {} must be f32 or f64 but is {}", what, name_of(logs.type)));
  }
  logs.shape.push_back(1);
  logs.strides.push_back(1);
  return tensor_of(kMerge, what, logs);
}

MergeJob merge_job_of(const TensorView& out, const TensorView& logsumexp, const ConstTensorView& other,
                      const ConstTensorView& other_logsumexp) {
  MergeJob job;
  check_merged("out", out, out.shape);
  job.out = tensor_of(kMerge, "out", out);
  check_merged("other", other, out.shape);
  job.other = tensor_of(kMerge, "other", other);
  Extents rows;
  for (int axis = 0; axis + 1 < out.shape.rank; ++axis) rows.push_back(out.shape[axis]);
  job.logsumexp = logs_of("logsumexp", logsumexp, rows);
  job.other_logsumexp = logs_of("other_logsumexp", other_logsumexp, rows);
  kernels::check_writable(kMerge, "out", out);
  kernels::check_writable(kMerge, "logsumexp", logsumexp);
  const Named written[] = {{"out", out}, {"logsumexp", logsumexp}};
  check_apart(kMerge, written[0], written[1]);
  for (const Named& output : written) {
    check_apart(kMerge, output, {"other", other});
    check_apart(kMerge, output, {"other_logsumexp", other_logsumexp});
  }
  return job;
}

}  // namespace

void merge(TensorView out, TensorView logsumexp, ConstTensorView other, ConstTensorView other_logsumexp,
           const Run& run) {
  const kernels::CallThreads threads_of_call(kMerge, run);
  const MergeJob job = merge_job_of(out, logsumexp, other, other_logsumexp);
  if (count_of(logsumexp.shape) == 0) return;  // extents of an empty tensor may be any
  const std::int64_t heads = job.out.heads, queries = job.out.sequence;
  const auto some = [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row)
      merge_row(job, row / queries / heads, row / queries % heads, row % queries);
  };
  const std::int64_t rows = job.out.batch * heads * queries;
#if POSENC_CPU_BACKEND
  constexpr std::int64_t kElements = 1 << 14;  // fewer are not worth a thread
  if (kernels::selected_backend().name == "cpu") {
    kernels::cpu::parallel_for(
        rows, std::max<std::int64_t>(kElements / std::max<std::int64_t>(job.out.features, 1), 1), some);
    return;
  }
#endif
  some(0, rows);
}

}  // namespace posenc
