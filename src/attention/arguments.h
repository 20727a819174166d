#pragma once

#include <string_view>

#include "attention/plan.h"
#include "kernels/checks.h"

namespace posenc::attend {

// The checks that attention and its backward share. Each throws an Error that begins with the verb.

/// All four axes of a tensor, also of an empty one: kernels::heads_of forgets its extents, which the checks compare.
template <class Void>
HeadTensor<Void> tensor_of(std::string_view verb, std::string_view what, const BasicTensorView<Void>& view) {
  HeadTensor<Void> heads = kernels::heads_of(verb, what, view);
  const int rank = view.shape.rank;
  heads.batch = rank > 3 ? view.shape[0] : 1;
  heads.heads = rank > 2 ? view.shape.back(2) : 1;
  heads.sequence = view.shape.back(1);
  return heads;
}

/// q, k and v, the scale, and what every query sees.
void plan_inputs(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options, Plan& plan);

/// The position's own part of the job: a bias, or the rotation of q and k.
void plan_position(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options, Plan& plan);

/// The temperature of the options, or that of a form that is nothing else; null: none.
const Temperature* temperature_of(const AttentionOptions& options) noexcept;

/// Of a bias with vectors by distance: the scale, features that must fit, and what meets them in place of q.
void plan_vectors(std::string_view verb, const Bias& bias, const AttentionInputs& inputs,
                  const AttentionOptions& options, Plan& plan);
/// Throws where the options have queries that the form does not read.
void refuse_position_queries(std::string_view verb, const AttentionOptions& options);

/// Of a bias that is made of gates: their sums, or the features of its table.
void plan_gates(std::string_view verb, const Bias& bias, const AttentionOptions& options, Plan& plan);
/// Throws where the options have gates that the form does not read.
void refuse_log_gates(std::string_view verb, const AttentionOptions& options);
/// [batch, heads, keys] of a float type.
HeadTensor<const void> gates_of(std::string_view verb, std::string_view what, const ConstTensorView& view,
                                const AttentionJob& job);
/// [batch, keys, heads] as [batch, heads, keys].
template <class Void> BasicTensorView<Void> gates_heads_first(const BasicTensorView<Void>& gates) {
  const int rank = gates.shape.rank;
  return gates.data == nullptr || rank < 2 ? gates : swap_axes(gates, rank - 2, rank - 1);
}
/// The gradient of the gates from that of their sums.
void write_gate_gradient(const TensorView& to, const BackwardJob& job);

/// Throws where no kernel on a GPU does what the options ask for.
void refuse_on_device(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options);

/// The same for tensors on a GPU: checks it, and says where tokens are. Nothing is rotated.
void plan_device_position(std::string_view verb, const AttentionInputs& inputs, const AttentionOptions& options,
                          Plan& plan);

/// An array with the batch, heads and tokens of `like` and so many features.
struct Wanted {
  DataType type;
  const HeadTensor<const void>& like;
  std::int64_t features;
};
void check_result(std::string_view verb, std::string_view what, const ConstTensorView& view, const Wanted& wanted);
HeadTensor<void> result_of(std::string_view verb, std::string_view what, const TensorView& view,
                           const Wanted& wanted);
/// [batch, heads, queries] of the type of sums.
HeadTensor<void> logsumexp_of(std::string_view verb, const TensorView& view, const AttentionJob& job);

struct Named {
  std::string_view what;
  ConstTensorView view;
};
/// Throws where the two share a byte.
void check_apart(std::string_view verb, const Named& one, const Named& other);

/// f64 for f64, else f32.
DataType sums_type(DataType type);
bool has_work(const AttentionJob& job);

}  // namespace posenc::attend
