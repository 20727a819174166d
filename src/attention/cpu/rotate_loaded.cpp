#include "attention/cpu/rotate_loaded.h"

#include "kernels/cpu/rotate_rows.h"

namespace posenc::attend::cpu {

void rotate_loaded_rows(const RowRotation& rotation, std::int64_t b, std::int64_t begin, std::int64_t end,
                        std::int64_t stride, float* rows) {
  const Rotation& form = *rotation.form;
  const std::int64_t pairs = rotation.pairs / form.blocks;
  const PairPlacement places = placement_of(form.layout, pairs);
  AlignedVector<float> scratch(places.read == places.write ? 0 : static_cast<std::size_t>(2 * pairs));
  const float* cos_sin = rotation.cos_sin + b * rotation.batch_stride + begin * rotation.token_stride;

  kernels::cpu::RotateRows<float, float> work;
  work.out = rows + rotation.first;
  work.x = work.out;
  work.cosines = cos_sin;
  work.sines = cos_sin + rotation.token_stride / 2;
  work.pairs = pairs;
  work.blocks = form.blocks;
  work.read = places.read;
  work.write = places.write;
  work.inner = {end - begin, stride, stride, rotation.token_stride};
  work.scratch = scratch.empty() ? nullptr : scratch.data();
  kernels::cpu::rotate_rows(work);
}

}  // namespace posenc::attend::cpu
