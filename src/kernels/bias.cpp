// Checks the arguments of bias and bias_backward.

#include <fmt/format.h>

#include <vector>

#include "kernels/checks.h"
#include "kernels/element.h"
#include "posenc/apply.h"
#include "posenc/error.h"
#include "terms/terms.h"

namespace posenc {
namespace {

using namespace kernels;

/// [batch, heads, queries, keys], or without the batch.
template <class Void>
HeadTensor<Void> scores_of(std::string_view verb, std::string_view what, const BasicTensorView<Void>& view) {
  check_tensor(verb, what, view, 3, 4, "3 or 4 axes, batch, heads, queries, keys");
  HeadTensor<Void> scores;
  scores.data = view.data;
  scores.type = view.type;
  if (view.shape.rank == 4) {
    scores.batch = view.shape[0];
    scores.batch_stride = view.strides[0];
  }
  scores.heads = view.shape.back(2);
  scores.sequence = view.shape.back(1);
  scores.features = view.shape.back(0);
  scores.head_stride = view.strides.back(2);
  scores.token_stride = view.strides.back(1);
  scores.feature_stride = view.strides.back(0);
  return scores;
}

/// Checks form and positions against the scores, and stores the positions in the job.
template <class Job, class Void> void prepare_job(std::string_view verb, Job& job, const HeadTensor<Void>& scores,
                                                  const QueryKey<Positions>& positions, const Bias& form) {
  if (positions.q.device != Device::kHost || positions.k.device != Device::kHost) {
    raise(fmt::format("{}: the position ids must be on the host", verb));  // their distances are checked
  }
  terms::refuse_content(verb, form);
  terms::check(verb, form, scores.heads);
  const int axes = position_axes_of(form);
  const RowLimit limit{.is_signed = terms::has_signed_positions(form)};
  job.queries =
      positions_of(fmt::format("{}: queries", verb), positions.q, axes, {scores.batch, scores.sequence}, limit);
  job.keys = positions_of(fmt::format("{}: keys", verb), positions.k, axes, {scores.batch, scores.features}, limit);
  terms::check_positions(verb, form, job.queries, job.keys, {scores.batch, scores.sequence, scores.features});
  job.form = &form;
}

template <class Void> bool is_empty(const HeadTensor<Void>& x) {
  return x.batch == 0 || x.heads == 0 || x.sequence == 0 || x.features == 0;
}

void add_sums(const TensorView& out, const std::vector<double>& sums) {
  const std::int64_t columns = out.shape.rank == 2 ? out.shape[1] : 1;
  with_type(out.type, [&](auto kind) {
    using T = decltype(kind);
    for (std::size_t at = 0; at < sums.size(); ++at) {
      const auto row = static_cast<std::int64_t>(at) / columns, column = static_cast<std::int64_t>(at) % columns;
      const std::int64_t offset = row * out.strides[0] + (out.shape.rank == 2 ? column * out.strides[1] : 0);
      T& element = static_cast<T*>(out.data)[offset];
      element = numerics::narrow<T>(numerics::widen(element) + sums[at]);
    }
  });
}

}  // namespace

void bias(TensorView out, const Positions& queries, const Positions& keys, const Bias& form, const Run& run) {
  const CallThreads threads_of_call("bias", run);
  constexpr std::string_view verb = "bias";
  BiasJob job;
  job.out = scores_of(verb, "out", out);
  check_writable(verb, "out", out);
  prepare_job(verb, job, job.out, {queries, keys}, form);
  job.site = site_of(verb, {out, terms::weights(form)}, queries, run);
  if (!is_empty(job.out)) backend_for(verb, job.site.device).bias(job);
}

void bias_backward(TensorView d_parameters, ConstTensorView d_out, const QueryKey<Positions>& positions,
                   const Bias& form, const Run& run) {
  const CallThreads threads_of_call("bias_backward", run);
  constexpr std::string_view verb = "bias_backward";
  BiasBackwardJob job;
  job.gradient = scores_of(verb, "d_out", d_out);
  prepare_job(verb, job, job.gradient, positions, form);
  const Extents shape = terms::parameters(form);
  check_tensor(verb, "d_parameters", d_parameters, 1, 2, "1 or 2 axes");
  check_writable(verb, "d_parameters", d_parameters);
  if (d_parameters.shape != shape) {
    raise(
        fmt::format("{}: d_parameters must be {} but is {}", verb, to_string(shape), to_string(d_parameters.shape)));
  }
  job.site = site_of(verb, {d_parameters, d_out, terms::weights(form)}, positions.q, run);
  if (is_empty(job.gradient)) return;
  std::vector<double> sums(job.site.device == Device::kHost ? static_cast<std::size_t>(count_of(shape)) : 0);
  job.sums = sums.data();
  job.parameters = job.site.device == Device::kHost ? view(sums.data(), shape) : d_parameters;
  backend_for(verb, job.site.device).bias_backward(job);
  if (job.site.device == Device::kHost) add_sums(d_parameters, sums);
}

}  // namespace posenc
