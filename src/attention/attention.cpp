// attention checks every argument here, once, so that kernels need not. Also plans, which are made once for many
// calls.

#include "posenc/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "attention/arguments.h"
#include "attention/packed_pages.h"
#include "attention/select.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#if POSENC_CUDA
#include "attention/cuda/forward.h"
#include "attention/cuda/host.h"
#include "kernels/cuda/call.h"
#endif

namespace posenc {
namespace {

using namespace attend;
constexpr std::string_view kAttention = "attention";

// The tensors of a call, checked, and the keys that each query attends to.
void plan_tensors(const TensorView& out, const AttentionInputs& inputs, const AttentionOptions& options, Plan& plan) {
  AttentionJob& job = plan.job;
  plan_inputs(kAttention, inputs, options, plan);
  job.out = result_of(kAttention, "out", out, {inputs.q.type, job.q, job.v.features});
  if (options.weights.data != nullptr) {
    job.weights = result_of(kAttention, "weights", options.weights, {inputs.q.type, job.q, job.k.sequence});
  }
  if (options.logsumexp.data != nullptr) job.logsumexp = logsumexp_of(kAttention, options.logsumexp, job);
}

void check_outputs_apart(const TensorView& out, const AttentionInputs& inputs, const AttentionOptions& options) {
  const Named outputs[] = {{"out", out}, {"weights", options.weights}, {"logsumexp", options.logsumexp}};
  for (const Named& output : outputs) {
    for (const Named& input :
         {Named{"q", inputs.q}, Named{"k", inputs.k}, Named{"v", inputs.v}, Named{"mask", options.mask},
          Named{"sinks", options.sinks}, Named{"position_queries", options.position_queries},
          Named{"log_gates", options.log_gates}}) {
      check_apart(kAttention, output, input);
    }
  }
  check_apart(kAttention, outputs[0], outputs[1]);
  check_apart(kAttention, outputs[0], outputs[2]);
  check_apart(kAttention, outputs[1], outputs[2]);
}

// All parts are checked before any is computed.
void attend_packed_pages(const TensorView& out, const AttentionInputs& inputs, const AttentionOptions& options) {
  std::deque<PackedPart> parts = packed_parts(kAttention, out, inputs, options);
  check_outputs_apart(out, inputs, options);
  std::optional<RotationForms> forms;
  if (const auto* rotation = std::get_if<Rotation>(&options.position)) forms = forms_of(*rotation);
  std::deque<Plan> plans;
  for (const PackedPart& part : parts) {
    Plan& plan = plans.emplace_back();
    plan.forms = forms ? &*forms : nullptr;
    plan_tensors(part.out, part.inputs, part.options, plan);
    plan.backend = &selected_attention(kAttention);
    plan_position(kAttention, part.inputs, part.options, plan);
  }
  for (const Plan& plan : plans) {
    if (has_work(plan.job)) plan.backend->forward(plan.job);
  }
}

// Checks every argument. `forms`: those of the options' rotation, if already made.
void attend_once(const TensorView& out, const AttentionInputs& inputs, const AttentionOptions& options,
                 const RotationForms* forms, const Run& run) {
  if (has_packed_pages(options)) {
    attend_packed_pages(out, inputs, options);
    return;
  }
  Plan plan;
  plan.forms = forms;
  AttentionJob& job = plan.job;
  plan_tensors(out, inputs, options, plan);
  check_outputs_apart(out, inputs, options);
  const auto* bias = std::get_if<Bias>(&options.position);
  const auto* table = bias != nullptr ? std::get_if<DistanceTable>(&bias->source) : nullptr;
  const kernels::Site site = kernels::site_of(
      kAttention,
      {out, inputs.q, inputs.k, inputs.v, options.weights, options.logsumexp, options.mask, options.sinks,
       options.position_queries, options.log_gates, table != nullptr ? table->weights : out},
      {}, run);
  if (site.device != Device::kHost) {
    kernels::backend_for(kAttention, site.device);  // throws if there is none
    refuse_on_device(kAttention, inputs, options);
#if POSENC_CUDA
    plan_device_position(kAttention, inputs, options, plan);
    const kernels::cuda::UseWorkspace use(run.workspace);
    if (has_work(job)) cuda::forward(job, inputs, options, site);
#endif
    return;
  }
#if POSENC_CUDA
  const bool is_forced = kernels::selected_backend().name == "cuda" && run.workspace.empty();
  if (is_forced && cuda::takes_from_host(job)) {
    if (has_work(job)) cuda::forward_on_host(job, options);
    return;
  }
#endif
  plan.backend = &selected_attention(kAttention);
  plan_position(kAttention, inputs, options, plan);
  if (has_work(job)) plan.backend->forward(job);
}

// The most that a call may need, in place of what the spans hold when a plan is made: full lengths, any page, ids of
// 0.
struct WorstCase {
  AttentionOptions options;
  std::vector<std::int64_t> query_lengths, key_lengths, query_ids, key_ids;
  std::vector<std::int32_t> block_table, narrow_query_ids, narrow_key_ids;

  WorstCase(const AttentionOptions& given, const AttentionInputs& like) : options(given) {
    const std::int64_t tokens = like.k.shape.back(1);
    block_table.assign(given.block_table.size(), 0);
    options.block_table = block_table;
    const std::int64_t pages =
        given.key_lengths.empty() ? 0 : std::ssize(block_table) / std::ssize(given.key_lengths);
    key_lengths.assign(given.key_lengths.size(), block_table.empty() ? tokens : pages * tokens);
    options.key_lengths = key_lengths;
    query_lengths.assign(given.query_lengths.size(), like.q.shape.back(1));
    options.query_lengths = query_lengths;
    const auto zero = [](std::optional<Positions>& positions, auto& ids, auto& narrow_ids) {
      if (!positions) return;
      ids.assign(positions->ids.size(), 0);
      narrow_ids.assign(positions->ids_i32.size(), 0);
      positions->ids = ids;
      positions->ids_i32 = narrow_ids;
    };
    if (given.log_gates.data != nullptr) {  // the gates may hold anything at this point
      static constexpr double kZero = 0;
      options.log_gates.data = &kZero;
      for (int axis = 0; axis < options.log_gates.strides.rank; ++axis) options.log_gates.strides[axis] = 0;
    }
    zero(options.query_positions, query_ids, narrow_query_ids);
    zero(options.key_positions, key_ids, narrow_key_ids);
  }
  WorstCase(const WorstCase&) = delete;
  WorstCase& operator=(const WorstCase&) = delete;
};

// A tensor of that shape in which all rows are the same row of zeros.
ConstTensorView with_rows_of(const std::vector<double>& zeros, ConstTensorView like) {
  like.data = zeros.data();
  for (int axis = 0; axis < like.strides.rank; ++axis) like.strides[axis] = 0;
  if (like.strides.rank > 0) like.strides[like.strides.rank - 1] = 1;
  return like;
}

void check_like(std::string_view what, const ConstTensorView& view, const ConstTensorView& like) {
  if (view.shape == like.shape && view.type == like.type) return;
  raise(fmt::format("attention: the plan was made for {} of type {} and shape {}, got {} {}", what,
                    name_of(like.type), to_string(like.shape), name_of(view.type), to_string(view.shape)));
}

}  // namespace

struct AttentionPlan::Made {
  AttentionOptions options;
  std::optional<Axes> axes;  // if heads come last
  ConstTensorView q, k, v;   // heads first; without data
  std::optional<RotationForms> forms;
  std::size_t shared = 0, piece = 0;  // bytes of a workspace, per call and per thread

  ConstTensorView placed(const ConstTensorView& x) const { return axes ? heads_first(x, *axes) : x; }
};

AttentionPlan::AttentionPlan(Made* made) noexcept : made_(made) {}
AttentionPlan::AttentionPlan(AttentionPlan&& other) noexcept : made_(std::exchange(other.made_, nullptr)) {}
AttentionPlan& AttentionPlan::operator=(AttentionPlan&& other) noexcept {
  std::swap(made_, other.made_);
  return *this;
}
AttentionPlan::~AttentionPlan() { delete made_; }

AttentionPlan plan_attention(const AttentionInputs& like, const AttentionOptions& options) {
  auto made = std::make_unique<AttentionPlan::Made>();
  for (const ConstTensorView& x : {like.q, like.k, like.v}) {
    if (x.device != Device::kHost) raise("plan_attention: plans are for tensors on the host");
  }
  if (has_packed_pages(options)) {
    raise(
        "plan_attention: packed queries over a paged cache cannot be planned; use a batch in which every sequence has the same "
        "number of queries");
  }
  made->options = options;
  made->options.axes.reset();
  if (options.axes && has_heads_last(*options.axes)) made->axes = options.axes;
  if (options.position_queries.data != nullptr) {
    made->options.position_queries = made->placed(options.position_queries);
  }
  if (made->axes) made->options.log_gates = gates_heads_first(options.log_gates);
  made->q = made->placed(like.q);
  made->k = made->placed(like.k);
  made->v = made->placed(like.v);
  if (const auto* rotation = std::get_if<Rotation>(&options.position)) made->forms = forms_of(*rotation);

  const std::int64_t widest = std::max(made->k.shape.rank > 0 ? made->k.shape.back(0) : 0,
                                       made->v.shape.rank > 0 ? made->v.shape.back(0) : 0);
  const std::vector<double> zeros(static_cast<std::size_t>(
      std::max<std::int64_t>({widest, made->q.shape.rank > 0 ? made->q.shape.back(0) : 0, 1})));
  const AttentionInputs inputs{with_rows_of(zeros, made->q), with_rows_of(zeros, made->k),
                               with_rows_of(zeros, made->v)};
  for (const ConstTensorView& x : {inputs.q, inputs.k, inputs.v}) {
    kernels::check_tensor("plan_attention", "a tensor", x, 2, 4, "2 to 4 axes, batch, heads, sequence, features");
  }
  const WorstCase worst(made->options, inputs);
  kernels::CountMemory count;
  {
    Plan plan;
    plan.forms = made->forms ? &*made->forms : nullptr;
    plan.backend = &selected_attention("plan_attention");
    plan_inputs("plan_attention", inputs, worst.options, plan);
    plan_position("plan_attention", inputs, worst.options, plan);
    plan.job.out.type = inputs.q.type;
    if (has_work(plan.job) && plan.backend->count != nullptr) plan.backend->count(plan.job);
  }
  made->shared = count.shared;
  made->piece = count.piece;
  for (ConstTensorView* x : {&made->q, &made->k, &made->v}) x->data = nullptr;
  return AttentionPlan(made.release());
}

std::size_t workspace_bytes(const AttentionPlan& plan, int threads_of_call) {
  constexpr std::size_t kLine = 64;  // each part starts on a cache line
  if (plan.made_ == nullptr) raise("workspace_bytes: the plan was moved from");
  const kernels::CallThreads threads_used("workspace_bytes", {.threads = threads_of_call});
  return plan.made_->shared + kLine + static_cast<std::size_t>(threads()) * (plan.made_->piece + kLine);
}

void attention(const AttentionPlan& plan, TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const Run& run) {
  if (plan.made_ == nullptr) raise("attention: the plan was moved from");
  const AttentionPlan::Made& made = *plan.made_;
  const AttentionInputs inputs{made.placed(q), made.placed(k), made.placed(v)};
  check_like("q", inputs.q, made.q);
  check_like("k", inputs.k, made.k);
  check_like("v", inputs.v, made.v);
  for (const ConstTensorView& x : {inputs.q, inputs.k, inputs.v}) {
    if (x.device != Device::kHost) raise("attention: plans are for tensors on the host");
  }
  const kernels::CallThreads threads_of_call(kAttention, run);
  const TensorView placed_out = made.axes ? heads_first(out, *made.axes) : out;
  const RotationForms* const forms = made.forms ? &*made.forms : nullptr;
  if (run.workspace.empty()) {
    attend_once(placed_out, inputs, made.options, forms, run);
    return;
  }
  const std::size_t needed = workspace_bytes(plan, run.threads);
  if (run.workspace.size() < needed) {
    raise(fmt::format("attention: the workspace has {} bytes but {} threads need {}", run.workspace.size(), threads(),
                      needed));
  }
  kernels::Arena arena(run.workspace);
  const kernels::UseArena use(&arena);
  attend_once(placed_out, inputs, made.options, forms, run);
}

std::size_t workspace_bytes(const AttentionInputs& inputs, [[maybe_unused]] const AttentionOptions& options) {
  constexpr std::string_view verb = "workspace_bytes";
  for (const ConstTensorView& x : {inputs.q, inputs.k, inputs.v}) {
    kernels::check_tensor(verb, "a tensor", x, 2, 4, "2 to 4 axes, batch, heads, sequence, features");
    if (x.device == Device::kHost) raise("workspace_bytes: on the host, make a plan first (plan_attention)");
  }
  kernels::backend_for(verb, Device::kCuda);  // throws if there is none
  std::size_t bytes = 0;
#if POSENC_CUDA
  Extents shape = inputs.q.shape;
  shape[shape.rank - 1] = inputs.v.shape.back(0);
  const TensorView out(reinterpret_cast<void*>(std::uintptr_t{16}), inputs.q.type,
                       shape);  // the address is never read
  const kernels::cuda::MeasureWorkspace measure;
  attention(on(Device::kCuda, out), inputs.q, inputs.k, inputs.v, options);
  bytes = measure.bytes();
#endif
  return bytes;
}

void attention(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
               const AttentionOptions& options, const Run& run) {
  if (options.axes && has_heads_last(*options.axes)) {
    AttentionOptions with_heads_first = options;
    with_heads_first.axes.reset();
    if (options.position_queries.data != nullptr) {
      with_heads_first.position_queries = heads_first(options.position_queries, *options.axes);
    }
    with_heads_first.log_gates = gates_heads_first(options.log_gates);
    attention(heads_first(out, *options.axes), heads_first(q, *options.axes), heads_first(k, *options.axes),
              heads_first(v, *options.axes), with_heads_first, run);
    return;
  }
  const kernels::CallThreads threads_of_call(kAttention, run);
  attend_once(out, {q, k, v}, options, nullptr, run);
}

}  // namespace posenc
