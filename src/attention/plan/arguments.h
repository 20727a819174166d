#pragma once

#include <string_view>

#include "attention/plan/plan.h"
#include "kernels/checks.h"

namespace posenc::attend {

// The checks shared by attention and its backward pass. Each throws an Error that begins with the verb.

/// All four axes of a tensor, even of an empty one: kernels::heads_of drops its extents, which the checks compare.
template <class Void> HeadTensor<Void> tensor_of(std::string_view verb, std::string_view what,
                                                 const BasicTensorView<Void>& view, Types types = Types::kOfNumbers) {
  HeadTensor<Void> heads = kernels::heads_of(verb, what, view, types);
  const int rank = view.shape.rank;
  heads.batch = rank > 3 ? view.shape[0] : 1;
  heads.heads = rank > 2 ? view.shape.back(2) : 1;
  heads.sequence = view.shape.back(1);
  return heads;
}

/// Plans q, k and v, the scale, and the keys that each query attends to.
void plan_inputs(const AttentionCall& call, Plan& plan);

/// Plans the position's part of the job: a bias, or the rotation of q and k.
void plan_position(const AttentionCall& call, Plan& plan);

/// For a rotation: plans q and k rotated, or the cosines and sines with which they are rotated as they are read. `q`: as given,
/// or times its temperature.
void plan_rotation(const AttentionCall& call, const ConstTensorView& q, Plan& plan);

/// For a bias: plans the scale and, if it has vectors, what is multiplied with them in place of q; checks their features.
void plan_vectors(const AttentionCall& call, Plan& plan);
/// Throws if the call has position_queries that the form does not read.
void refuse_position_queries(const AttentionCall& call);

/// For a bias made of gates: plans their sums.
void plan_gates(const AttentionCall& call, Plan& plan);
/// Throws if the call has log_gates that the form does not read.
void refuse_log_gates(const AttentionCall& call);
/// [batch, heads, keys] of a float type.
HeadTensor<const void> gates_of(std::string_view verb, std::string_view what, const ConstTensorView& view,
                                const AttentionJob& job);
/// [batch, keys, heads] as [batch, heads, keys].
template <class Void> BasicTensorView<Void> gates_heads_first(const BasicTensorView<Void>& gates) {
  const int rank = gates.shape.rank;
  return gates.data == nullptr || rank < 2 ? gates : swap_axes(gates, rank - 2, rank - 1);
}
/// Writes the gradient of the gates, given that of their sums.
void write_gate_gradient(const TensorView& to, const BackwardJob& job);

/// Throws if the caller's mask does not broadcast to [batch, heads, queries, keys].
void check_mask(std::string_view verb, const ConstTensorView& mask, const Extents& wanted);
/// The pages that each sequence has in a block table of `entries`. Throws if they are not the same number for all.
std::int64_t pages_of_sequence(std::string_view verb, std::int64_t entries, std::int64_t sequences);

/// Throws if no GPU kernel supports the call.
void refuse_on_device(const AttentionCall& call);

/// plan_position for tensors on a GPU: checks the position and sets where tokens are. Rotates nothing.
void plan_device_position(const AttentionCall& call, Plan& plan);

/// An array with the batch, heads and tokens of `like` and the given number of features.
struct Wanted {
  DataType type;
  const HeadTensor<const void>& like;
  std::int64_t features;
};
void check_result(std::string_view verb, std::string_view what, const ConstTensorView& view, const Wanted& wanted);
HeadTensor<void> result_of(std::string_view verb, std::string_view what, const TensorView& view,
                           const Wanted& wanted);
/// [batch, heads, queries] in the type of sums.
HeadTensor<void> logsumexp_of(std::string_view verb, const TensorView& view, const AttentionJob& job);

struct Named {
  std::string_view what;
  ConstTensorView view;
};
/// Throws if the two overlap in memory.
void check_apart(std::string_view verb, const Named& one, const Named& other);

/// f64 for f64, else f32.
DataType sums_type(DataType type);
bool has_work(const AttentionJob& job);

}  // namespace posenc::attend
