#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/shape.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::lab {

/// A model's positional encoding with its current parameters. It refers to them, so they must outlive it.
struct Position {
  Form embedding = Nothing{};  ///< added to the embeddings
  Form attention = Nothing{};  ///< a rotation or a bias inside attention
};

/// The library's scheme of a model. Learned numbers that are fields of the scheme are filled in.
template <class T> Scheme scheme_of(const Shape& shape, const Layout& layout, const T* parameters);

/// Supports sequences of up to `length` tokens: kerple and fire tabulate that many distances.
template <class T>
Position prepare_position(const Shape& shape, const Layout& layout, const T* parameters, std::int64_t length);

/// Zeros for attention_backward to add the gradient of the bias's parameters to; empty if it has none.
std::vector<double> bias_gradient(const Position& position, std::int64_t heads);
Extents bias_gradient_shape(const Position& position, std::int64_t heads);

/// Propagates that gradient to the scheme's own parameters and adds it to `gradients`, which has the layout of the
/// parameters.
template <class T> void position_backward(const Shape& shape, const Layout& layout, const T* parameters,
                                          std::span<const double> d_bias, T* gradients);

}  // namespace posenc::lab
