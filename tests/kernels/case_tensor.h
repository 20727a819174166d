#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "numerics/narrow.h"
#include "posenc/tensor.h"

namespace posenc::tests {

/// An array with room for odd strides, filled with reproducible values in [−2, 2).
template <class T> struct CaseTensor {
  std::vector<T> storage;
  Extents shape, strides;

  TensorView view() { return {storage.data(), data_type_of<T>(), shape, strides}; }
  ConstTensorView const_view() const { return {storage.data(), data_type_of<T>(), shape, strides}; }
  T& at(std::int64_t b, std::int64_t t, std::int64_t c) {
    return storage[static_cast<std::size_t>(b * strides[0] + t * strides[1] + c * strides[2])];
  }
};

enum class Strides { kDense, kPaddedRows, kSequenceFirst, kColumnsApart };

template <class T> CaseTensor<T> make_case(std::int64_t batch, std::int64_t sequence, std::int64_t width,
                                           Strides kind, std::uint64_t seed) {
  CaseTensor<T> x;
  x.shape = {batch, sequence, width};
  switch (kind) {
    case Strides::kDense:
      x.strides = {sequence * width, width, 1};
      break;
    case Strides::kPaddedRows:
      x.strides = {sequence * (width + 3), width + 3, 1};
      break;
    case Strides::kSequenceFirst:
      x.strides = {width, batch * width, 1};
      break;
    case Strides::kColumnsApart:
      x.strides = {1, batch * width, batch};
      break;
  }
  const std::int64_t last = (batch - 1) * x.strides[0] + (sequence - 1) * x.strides[1] + (width - 1) * x.strides[2];
  std::mt19937_64 random(seed);
  x.storage.resize(static_cast<std::size_t>(last + 1));
  for (T& value : x.storage) {
    value = numerics::narrow<T>(static_cast<double>(random() >> 11) * 0x1p-51 - 2.0);
  }
  return x;
}

}  // namespace posenc::tests
