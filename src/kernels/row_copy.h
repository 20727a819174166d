#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/element.h"
#if POSENC_CPU_BACKEND
#include "kernels/cpu/row_math.h"
#endif

namespace posenc::kernels {

/// Whether the selected backend converts rows by vectors. The bytes are the same, except for those of a NaN, which stays one.
inline bool converts_by_vectors() noexcept {
#if POSENC_CPU_BACKEND
  return selected_backend().name == "cpu";
#else
  return false;
#endif
}

/// Copies the features of a head, rounded once if the types differ. What goes to a cache of e4m3 is first divided by its scale,
/// in f32 (f64 from f64); what goes to one of q8_0 is first rounded to f32. From q8_0 to q8_0, `features` are blocks.
template <class To, class From> struct RowCopy {
  std::int64_t features, to_stride, from_stride;
  bool by_vectors = converts_by_vectors();

  void operator()(To* to, const From* from, [[maybe_unused]] float scale = 1) const noexcept {
    if constexpr (std::is_same_v<To, From>) {
      if (to_stride == 1 && from_stride == 1) {
        std::copy_n(from, features, to);
        return;
      }
      for (std::int64_t f = 0; f < features; ++f) to[f * to_stride] = from[f * from_stride];
    } else if constexpr (std::is_same_v<To, Q8Block>) {
#if POSENC_CPU_BACKEND
      if constexpr (sizeof(From) <= 4) {
        if (by_vectors && from_stride == 1) return cpu::quantise_row(to, from, features);
      }
#endif
      for (std::int64_t f = 0; f < features; f += Q8Block::kElements, ++to) {
        float block[Q8Block::kElements];
        for (std::int64_t i = 0; i < Q8Block::kElements; ++i) {
          block[i] = static_cast<float>(numerics::widen(from[(f + i) * from_stride]));
        }
        *to = numerics::q8_block_of(block);
      }
    } else if constexpr (std::is_same_v<To, E4M3>) {
#if POSENC_CPU_BACKEND
      if constexpr (sizeof(From) <= 4) {
        if (by_vectors && to_stride == 1 && from_stride == 1) return cpu::quantise_row(to, from, scale, features);
      }
#endif
      using W = Working<From>;
      for (std::int64_t f = 0; f < features; ++f) {
        const W x = static_cast<W>(numerics::widen(from[f * from_stride])) / static_cast<W>(scale);
        to[f * to_stride] = numerics::narrow<E4M3>(static_cast<double>(x));
      }
    } else {
#if POSENC_CPU_BACKEND
      if constexpr (sizeof(To) <= 4 && sizeof(From) <= 4) {
        if (by_vectors && to_stride == 1 && from_stride == 1) {
          if constexpr (std::is_same_v<To, float>) {
            cpu::widen_row(to, from, features);
          } else {
            cpu::narrow_row(to, from, features);
          }
          return;
        }
      }
#endif
      for (std::int64_t f = 0; f < features; ++f) {
        to[f * to_stride] = numerics::narrow<To>(numerics::widen(from[f * from_stride]));
      }
    }
  }
};

}  // namespace posenc::kernels
