#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "lab/shape.h"
#include "posenc/forms.h"
#include "posenc/scheme.h"

namespace posenc::lab {

/// How a model knows positions, with its parameters as they are now. It looks at them, so they must stay in place.
struct Position {
  Form embedding = Nothing{};  ///< added to the embeddings
  Form attention = Nothing{};  ///< a rotation or a bias inside attention
};

/// The library's scheme of a model, with the numbers that it learned where they are fields of it.
template <class T> Scheme scheme_of(const Shape& shape, const Layout& layout, const T* parameters);

/// For sequences of up to `length` tokens; kerple and fire tabulate as many distances.
template <class T>
Position prepare_position(const Shape& shape, const Layout& layout, const T* parameters, std::int64_t length);

/// Room for the gradient of a bias's parameters as attention_backward adds to it; empty where there is none.
std::vector<double> bias_gradient(const Position& position, std::int64_t heads);
Extents bias_gradient_shape(const Position& position, std::int64_t heads);

/// From that gradient to the scheme's own parameters: added to `gradients`, which is laid out as the parameters.
template <class T> void position_backward(const Shape& shape, const Layout& layout, const T* parameters,
                                          std::span<const double> d_bias, T* gradients);

}  // namespace posenc::lab
