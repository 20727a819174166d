// attention checks every argument here, once, so that kernels need not. Also plans, which are made once for many
// calls.

#include "posenc/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "attention/plan/arguments.h"
#include "attention/plan/packed_pages.h"
#include "attention/select.h"
#include "posenc/backend.h"
#include "posenc/error.h"
#include "terms/terms.h"
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
void plan_tensors(const AttentionCall& call, Plan& plan) {
  AttentionJob& job = plan.job;
  const DataType type = call.inputs.q.type;
  plan_inputs(call, plan);
  job.out = result_of(call.verb, "out", call.out, {type, job.q, job.v.features});
  if (call.weights.data != nullptr) {
    job.weights = result_of(call.verb, "weights", call.weights, {type, job.q, job.k.sequence});
  }
  if (call.logsumexp.data != nullptr) job.logsumexp = logsumexp_of(call.verb, call.logsumexp, job);
}

void check_outputs_apart(const AttentionCall& call) {
  const Named outputs[] = {{"out", call.out}, {"weights", call.weights}, {"logsumexp", call.logsumexp}};
  for (const Named& output : outputs) {
    for (const Named& input :
         {Named{"q", call.inputs.q}, Named{"k", call.inputs.k}, Named{"v", call.inputs.v}, Named{"mask", call.mask},
          Named{"sinks", call.sinks}, Named{"position_queries", call.position_queries},
          Named{"log_gates", call.log_gates}}) {
      check_apart(call.verb, output, input);
    }
  }
  check_apart(call.verb, outputs[0], outputs[1]);
  check_apart(call.verb, outputs[0], outputs[2]);
  check_apart(call.verb, outputs[1], outputs[2]);
}

// All groups are checked before any is computed: the first is when it is planned, the others before that, without the
// keys' rotation, which takes long and does not fail for one group alone, except beyond the range of a table or growth.
void attend_packed_pages(const AttentionCall& call, const RotationForms* forms) {
  const PackedCall packed(call);
  check_outputs_apart(call);
  std::optional<RotationForms> own_forms;
  if (call.rotation != nullptr && forms == nullptr) forms = &own_forms.emplace(forms_of(*call.rotation));
  const auto plan_part = [&](const AttentionCall& part, Plan& plan) {
    plan.forms = forms;
    plan_tensors(part, plan);
    plan.backend = &selected_attention(call.verb);
    plan_position(part, plan);
  };
  bool is_first = true;
  packed.each_group([&](const SequenceGroup& group) {
    if (std::exchange(is_first, false)) return;
    const kernels::UseRest memory;
    PackedPart part(packed, group);
    if (call.rotation != nullptr && !has_table(*call.rotation) && !has_growth(*call.rotation)) {
      part.call.keys_are_rotated = true;
    }
    Plan plan;
    plan_part(part.call, plan);
  });
  packed.each_group([&](const SequenceGroup& group) {
    const kernels::UseRest memory;
    const PackedPart part(packed, group);
    Plan plan;
    plan_part(part.call, plan);
    if (has_work(plan.job)) plan.backend->forward(plan.job);
  });
}

// Checks every argument and computes. `forms`: those of the call's rotation, if already made.
void compute(const AttentionCall& call, const RotationForms* forms, const Run& run) {
  if (call.has_packed_pages()) {
    attend_packed_pages(call, forms);
    return;
  }
  Plan plan;
  plan.forms = forms;
  AttentionJob& job = plan.job;
  plan_tensors(call, plan);
  check_outputs_apart(call);
  const kernels::Site site = kernels::site_of(
      call.verb,
      {call.out, call.inputs.q, call.inputs.k, call.inputs.v, call.weights, call.logsumexp, call.mask, call.sinks,
       call.position_queries, call.log_gates, call.bias != nullptr ? terms::weights(*call.bias) : call.out},
      {}, run);
  if (site.device != Device::kHost) {
    kernels::backend_for(call.verb, site.device);  // throws if there is none
    refuse_on_device(call);
#if POSENC_CUDA
    plan_device_position(call, plan);
    const kernels::cuda::UseWorkspace use(run.workspace);
    if (has_work(job)) cuda::forward(job, call.inputs, call, site);
#endif
    return;
  }
#if POSENC_CUDA
  const bool is_forced = kernels::selected_backend().name == "cuda" && run.workspace.empty();
  if (is_forced && cuda::takes_from_host(job)) {
    if (has_work(job)) cuda::forward_on_host(call, compute);
    return;
  }
#endif
  plan.backend = &selected_attention(call.verb);
  plan_position(call, plan);
  if (has_work(job)) plan.backend->forward(job);
}

void attend_once(const TensorView& out, const AttentionInputs& inputs, const AttentionOptions& options,
                 const Run& run) {
  const AttentionCall call = call_of(kAttention, out, inputs, options);
  compute(call, nullptr, run);
}

// The most that a call may need, in place of what the spans hold when a plan is made: full lengths, any page, ids of
// 0.
struct WorstCase {
  AttentionCall call;
  std::vector<std::int64_t> query_lengths, key_lengths, packed, query_ids, key_ids;
  std::vector<std::int32_t> block_table, narrow_query_ids, narrow_key_ids;

  explicit WorstCase(const AttentionCall& given) : call(given) {
    const std::int64_t tokens = given.inputs.k.shape.back(1);
    block_table.assign(given.block_table.size(), 0);
    call.block_table = block_table;
    const std::int64_t pages =
        given.key_lengths.empty() ? 0 : std::ssize(block_table) / std::ssize(given.key_lengths);
    key_lengths.assign(given.key_lengths.size(), block_table.empty() ? tokens : pages * tokens);
    call.key_lengths = key_lengths;
    query_lengths.assign(given.query_lengths.size(), given.inputs.q.shape.back(1));
    call.query_lengths = query_lengths;
    if (given.has_packed_pages()) {
      packed.assign(given.packed.size(), 0);
      packed[0] = given.inputs.q.shape.back(1);
      call.packed = packed;
    }
    const auto zero = [](std::optional<Positions>& positions, auto& ids, auto& narrow_ids) {
      if (!positions) return;
      ids.assign(positions->ids.size(), 0);
      narrow_ids.assign(positions->ids_i32.size(), 0);
      positions->ids = ids;
      positions->ids_i32 = narrow_ids;
    };
    if (given.log_gates.data != nullptr) {  // the gates may hold anything at this point
      static constexpr double kZero = 0;
      call.log_gates.data = &kZero;
      for (int axis = 0; axis < call.log_gates.strides.rank; ++axis) call.log_gates.strides[axis] = 0;
    }
    zero(call.query_positions, query_ids, narrow_query_ids);
    zero(call.key_positions, key_ids, narrow_key_ids);
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
  AttentionCall call;        // made of these options; its tensors have no data
  std::optional<RotationForms> forms;
  std::size_t shared = 0, piece = 0;  // bytes of a workspace, per call and per thread

  ConstTensorView placed(const ConstTensorView& x) const { return axes ? heads_first(x, *axes) : x; }

  // Takes the memory of a call, and does nothing else.
  void take_memory(const AttentionCall& one) const {
    Plan plan;
    plan.forms = forms ? &*forms : nullptr;
    plan.backend = &selected_attention(one.verb);
    plan_inputs(one, plan);
    plan_position(one, plan);
    plan.job.out.type = one.inputs.q.type;
    if (has_work(plan.job) && plan.backend->count != nullptr) plan.backend->count(plan.job);
  }
  // The most of all that are counted.
  template <class Take> void count(const Take& take) {
    kernels::CountMemory counted;
    take();
    shared = std::max(shared, counted.shared);
    piece = std::max(piece, counted.piece);
  }
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
  made->options = options;
  if (options.axes && has_heads_last(*options.axes)) made->axes = options.axes;
  AttentionCall& call = made->call = call_of("plan_attention", {}, {like.q, like.k, like.v}, made->options);
  if (call.rotation != nullptr) made->forms = forms_of(*call.rotation);

  std::int64_t widest = 1;
  for (const ConstTensorView* x : {&call.inputs.q, &call.inputs.k, &call.inputs.v}) {
    if (x->shape.rank > 0) widest = std::max(widest, x->shape.back(0));
  }
  const std::vector<double> zeros(widest);
  for (ConstTensorView* x : {&call.inputs.q, &call.inputs.k, &call.inputs.v}) {
    *x = with_rows_of(zeros, *x);
    check_tensor(call.verb, "a tensor", *x, 2, 4, "2 to 4 axes, batch, heads, sequence, features", Types::kOfCache);
  }
  if (call.has_packed_pages()) call.planned_tokens = call.inputs.q.shape.back(1);
  const WorstCase worst(call);
  if (!call.has_packed_pages()) {
    made->count([&] { made->take_memory(worst.call); });
  } else {
    const PackedCall packed(worst.call);
    packed.each_largest_group(
        [&](const SequenceGroup& group) { made->count([&] { made->take_memory(PackedPart(packed, group).call); }); });
  }
  for (ConstTensorView* x : {&call.inputs.q, &call.inputs.k, &call.inputs.v}) x->data = nullptr;
  call.verb = kAttention;
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
  AttentionCall call = made.call;
  call.inputs = {made.placed(q), made.placed(k), made.placed(v)};
  ConstTensorView like_q = made.call.inputs.q;
  if (made.call.planned_tokens > 0 && call.inputs.q.shape.rank == like_q.shape.rank) {
    std::int64_t& tokens = like_q.shape[like_q.shape.rank - 2];
    tokens = std::min(tokens, call.inputs.q.shape.back(1));
  }
  check_like("q", call.inputs.q, like_q);
  check_like("k", call.inputs.k, made.call.inputs.k);
  check_like("v", call.inputs.v, made.call.inputs.v);
  for (const ConstTensorView& x : {call.inputs.q, call.inputs.k, call.inputs.v}) {
    if (x.device != Device::kHost) raise("attention: plans are for tensors on the host");
  }
  const kernels::CallThreads threads_of_call(kAttention, run);
  call.out = made.axes ? heads_first(out, *made.axes) : out;
  const RotationForms* const forms = made.forms ? &*made.forms : nullptr;
  if (run.workspace.empty()) {
    compute(call, forms, run);
    return;
  }
  const std::size_t needed = workspace_bytes(plan, run.threads);
  if (run.workspace.size() < needed) {
    raise(fmt::format("attention: the workspace has {} bytes but {} threads need {}", run.workspace.size(), threads(),
                      needed));
  }
  kernels::Arena arena(run.workspace);
  const kernels::UseArena use(&arena);
  compute(call, forms, run);
}

std::size_t workspace_bytes(const AttentionInputs& inputs, [[maybe_unused]] const AttentionOptions& options) {
  constexpr std::string_view verb = "workspace_bytes";
  for (const ConstTensorView& x : {inputs.q, inputs.k, inputs.v}) {
    check_tensor(verb, "a tensor", x, 2, 4, "2 to 4 axes, batch, heads, sequence, features");
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
  const kernels::CallThreads threads_of_call(kAttention, run);
  attend_once(out, {q, k, v}, options, run);
}

}  // namespace posenc
