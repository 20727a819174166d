#pragma once

#include <cstdint>
#include <span>

namespace posenc::lab {

// The layers of a Transformer besides attention, each with its gradient. Rows are tokens. Gradients of parameters are
// accumulated; gradients of activations are overwritten, unless the name says `added`. T is float, or double for
// tests against finite differences.

template <class T> struct TokenRows {
  T* data = nullptr;
  std::int64_t count = 0, width = 0;
};

/// out = (x − mean)/√(variance + 1e-5) · weight + bias for each row; stores means and inverse standard deviations.
template <class T>
void normalise(TokenRows<T> out, TokenRows<const T> x, const T* weight, const T* bias, T* means, T* inverses);
template <class T> void normalise_backward(TokenRows<T> d_x_added, T* d_weight, T* d_bias, TokenRows<const T> d_out,
                                           TokenRows<const T> x, const T* weight, const T* means, const T* inverses);

/// out = x·weight + bias, weight [x.width, out.width]; if `adds`, out += that.
template <class T>
void project(TokenRows<T> out, TokenRows<const T> x, const T* weight, const T* bias, bool adds = false);
template <class T> void project_backward(TokenRows<T> d_x, T* d_weight, T* d_bias, TokenRows<const T> d_out,
                                         TokenRows<const T> x, const T* weight);

/// out = x · Φ(x), in GPT-2's tanh approximation; stores Φ(x) in `gates`.
template <class T> void gelu(T* out, T* gates, const T* x, std::int64_t count);
/// Multiplies d by the derivative at x.
template <class T> void gelu_backward(T* d, const T* x, const T* gates, std::int64_t count);

/// Rows of a table.
template <class T> void look_up(TokenRows<T> out, const T* table, std::span<const std::int32_t> ids);
template <class T> void look_up_backward(T* d_table, TokenRows<const T> d_out, std::span<const std::int32_t> ids);

/// The loss of one row of logits.
struct RowLoss {
  double nll = 0;           ///< −log softmax(logits)[target]; 0 without a target
  bool is_greatest = true;  ///< whether the target has the largest logit
};
/// Fills `losses` for each row with a target (−1: none), and replaces the logits by their gradients times `scale`.
template <class T> void cross_entropy(TokenRows<T> logits, std::span<const std::int32_t> targets, double scale,
                                      std::span<RowLoss> losses);

}  // namespace posenc::lab
