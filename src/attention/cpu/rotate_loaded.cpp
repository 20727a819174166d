#include "attention/cpu/rotate_loaded.h"

#include <algorithm>

#include "kernels/cpu/rotate_rows.h"

namespace posenc::attend::cpu {
namespace {

// Rotates the rows that begin at `x` into those that begin at `out`, which may be the same.
template <class T> void rotate_loaded(const RowRotation& rotation, std::int64_t b, std::int64_t begin,
                                      std::int64_t end, const T* x, std::int64_t x_stride, T* out,
                                      std::int64_t stride) {
  const Rotation& form = *rotation.form;
  const std::int64_t pairs = rotation.pairs / form.blocks;
  const PairPlacement places = placement_of(form.layout, pairs);
  const bool needs_scratch = x == out && places.read != places.write;
  AlignedVector<T> scratch(needs_scratch ? static_cast<std::size_t>(2 * pairs) : 0);
  const float* cos_sin = rotation.cos_sin + b * rotation.batch_stride + begin * rotation.token_stride;

  kernels::cpu::RotateRows<T, float> work;
  work.out = out + rotation.first;
  work.x = x + rotation.first;
  work.cosines = cos_sin;
  work.sines = cos_sin + rotation.token_stride / 2;
  work.pairs = pairs;
  work.blocks = form.blocks;
  work.read = places.read;
  work.write = places.write;
  work.inner = {end - begin, stride, x_stride, rotation.token_stride};
  work.scratch = scratch.empty() ? nullptr : scratch.data();
  kernels::cpu::rotate_rows(work);
}

template <class T> void rotate_narrow(const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b,
                                      std::int64_t h, std::int64_t begin, std::int64_t end, T* out) {
  const std::int64_t features = x.features, first = rotation.first, last = first + 2 * rotation.pairs;
  if (x.feature_stride == 1 && x.pages == nullptr) {
    const T* row = x.row<T>(b, h, begin);
    rotate_loaded(rotation, b, begin, end, row, x.token_stride, out, features);
    if (first == 0 && last == features) return;
    for (std::int64_t t = begin; t < end; ++t, row += x.token_stride, out += features) {  // unrotated part
      std::copy(row, row + first, out);
      std::copy(row + last, row + features, out + last);
    }
    return;
  }
  for (std::int64_t t = begin; t < end; ++t) {
    const T* const row = x.row<T>(b, h, t);
    T* const to = out + (t - begin) * features;
    for (std::int64_t f = 0; f < features; ++f) to[f] = row[f * x.feature_stride];
  }
  rotate_loaded(rotation, b, begin, end, out, features, out, features);
}

}  // namespace

void rotate_loaded_rows(const RowRotation& rotation, std::int64_t b, std::int64_t begin, std::int64_t end,
                        std::int64_t stride, float* rows) {
  rotate_loaded(rotation, b, begin, end, rows, stride, rows, stride);
}

HeadTensor<const void> rotate_and_round(const HeadTensor<const void>& x, const RowRotation& rotation, std::int64_t b,
                                        std::int64_t h, std::int64_t begin, std::int64_t end, std::uint16_t* out) {
  if (x.type == DataType::kBF16) {
    rotate_narrow(x, rotation, b, h, begin, end, reinterpret_cast<BFloat16*>(out));
  } else {
    rotate_narrow(x, rotation, b, h, begin, end, reinterpret_cast<Half*>(out));
  }
  HeadTensor<const void> rows;
  rows.data = out;
  rows.type = x.type;
  rows.sequence = end - begin;
  rows.features = rows.token_stride = x.features;
  return rows;
}

}  // namespace posenc::attend::cpu
