// attention: every argument is checked here, once, so that kernels need not.

#include "posenc/attention.h"

#include "attention/arguments.h"
#include "attention/select.h"
#include "posenc/error.h"
#if POSENC_CUDA
#include "attention/cuda/forward.h"
#endif

namespace posenc {

void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options, const Run& run) {
  using namespace attend;
  constexpr std::string_view verb = "attention";
  if (options.axes && has_heads_last(*options.axes)) {
    AttentionOptions with_heads_first = options;
    with_heads_first.axes.reset();
    attention(heads_first(out, *options.axes), heads_first(q, *options.axes), heads_first(k, *options.axes),
              heads_first(v, *options.axes), with_heads_first, run);
    return;
  }
  const kernels::CallThreads threads_of_call(verb, run);
  const AttentionInputs inputs{q, k, v};
  Plan plan;
  AttentionJob& job = plan.job;
  plan_inputs(verb, inputs, options, plan);
  job.out = result_of(verb, "out", out, {q.type, job.q, job.v.features});
  if (options.weights.data != nullptr) {
    job.weights = result_of(verb, "weights", options.weights, {q.type, job.q, job.k.sequence});
  }
  if (options.logsumexp.data != nullptr) job.logsumexp = logsumexp_of(verb, options.logsumexp, job);
  const Named outputs[] = {{"out", out}, {"weights", options.weights}, {"logsumexp", options.logsumexp}};
  for (const Named& output : outputs) {
    for (const Named& input :
         {Named{"q", q}, Named{"k", k}, Named{"v", v}, Named{"mask", options.mask}, Named{"sinks", options.sinks}}) {
      check_apart(verb, output, input);
    }
  }
  check_apart(verb, outputs[0], outputs[1]);
  check_apart(verb, outputs[0], outputs[2]);
  check_apart(verb, outputs[1], outputs[2]);
  const auto* bias = std::get_if<Bias>(&options.position);
  const auto* table = bias != nullptr ? std::get_if<DistanceTable>(&bias->source) : nullptr;
  const kernels::Site site = kernels::site_of(verb,
                                              {out, q, k, v, options.weights, options.logsumexp, options.mask,
                                               options.sinks, table != nullptr ? table->weights : out},
                                              {}, run);
  if (site.device != Device::kHost) {
    kernels::backend_for(verb, site.device);  // or there is none
    refuse_on_device(verb, inputs, options);
#if POSENC_CUDA
    plan_device_position(verb, inputs, options, plan);
    if (has_work(job)) cuda::forward(job, inputs, options, site);
#endif
    return;
  }
  plan.backend = &selected_attention(verb);
  plan_position(verb, inputs, options, plan);
  if (has_work(job)) plan.backend->forward(job);
}

}  // namespace posenc
