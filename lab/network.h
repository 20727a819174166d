#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "lab/layers.h"
#include "lab/position.h"
#include "lab/shape.h"
#include "posenc/attention.h"

namespace posenc::lab {

/// Sequences, padded to the length of the longest.
struct Batch {
  std::int64_t count = 0, length = 0;
  std::vector<std::int32_t> tokens = {};     ///< [count, length]
  std::vector<std::int32_t> targets = {};    ///< [count, length]; −1: no loss
  std::vector<std::int64_t> positions = {};  ///< [count, length]; empty: 0, 1, 2 …
  std::vector<std::int64_t> lengths = {};    ///< [count]; empty: no padding

  std::int64_t target_count() const;
};
/// Sequences first … first + count − 1 of a batch.
Batch part_of(const Batch& batch, std::int64_t first, std::int64_t count);

/// Replaces the library's attention, with the same arguments, for comparisons.
struct OtherAttention {
  std::function<void(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                     const AttentionOptions& options)>
      forward;
  std::function<void(const AttentionGradients& gradients, ConstTensorView d_out, const AttentionInputs& inputs,
                     const AttentionOptions& options)>
      backward;
};

/// The results of a forward pass that the backward pass needs. Memory is reused from call to call.
template <class T> struct Activations {
  const OtherAttention* attention = nullptr;  ///< nullptr: the library's attention
  struct Layer {
    std::vector<T> x, normed1, means1, inverses1, qkv, mixed, logsumexp;
    std::vector<T> middle, normed2, means2, inverses2, up, gates, active;
  };
  std::vector<Layer> layers;
  std::vector<T> x, normed, means, inverses, logits;
  std::vector<T> d_x, d_normed, d_planes, d_qkv, d_mixed, d_active;  // of the backward pass
  std::vector<RowLoss> losses;
};

/// A model's parameters and their layout.
template <class T> struct Network {
  Shape shape;
  Layout layout;
  std::vector<T> parameters;
};

/// Computes the logits of every token, in `activations.logits`.
template <class T>
void forward(const Network<T>& network, const Position& position, const Batch& batch, Activations<T>& activations);

/// After forward: computes the losses of every token, and adds the gradient of their sum times `scale` to
/// `gradients`. Returns the sum of the negative log-likelihoods.
template <class T> double backward(const Network<T>& network, const Position& position, const Batch& batch,
                                   double scale, Activations<T>& activations, T* gradients);

/// After forward: the attention weights of a layer, [count, heads, length, length].
template <class T> std::vector<T> attention_weights(const Network<T>& network, const Position& position,
                                                    const Batch& batch, Activations<T>& activations,
                                                    std::int64_t layer);

/// After forward, if no gradient is needed: the sum of the losses.
template <class T> double losses_of(const Batch& batch, Activations<T>& activations, std::int64_t vocabulary);

}  // namespace posenc::lab
