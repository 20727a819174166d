#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/element.h"

namespace posenc::kernels {

/// Copies the features of a head, rounded once if the types differ.
template <class To, class From> struct RowCopy {
  std::int64_t features, to_stride, from_stride;
  void operator()(To* to, const From* from) const noexcept {
    if constexpr (std::is_same_v<To, From>) {
      if (to_stride == 1 && from_stride == 1) {
        std::copy_n(from, features, to);
        return;
      }
      for (std::int64_t f = 0; f < features; ++f) to[f * to_stride] = from[f * from_stride];
    } else {
      for (std::int64_t f = 0; f < features; ++f) {
        to[f * to_stride] = numerics::narrow<To>(numerics::widen(from[f * from_stride]));
      }
    }
  }
};

}  // namespace posenc::kernels
