#include "attention/cpu/turn_rows.h"

#include <vector>

#include "kernels/cpu/rotate_rows.h"

namespace posenc::attend::cpu {

void turn_rows(const Turning& turning, std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t stride,
               float* rows) {
  const Rotation& form = *turning.form;
  const std::int64_t pairs = turning.pairs / form.blocks;
  const PairPlacement places = placement_of(form.layout, pairs);
  std::vector<float> scratch(places.read == places.write ? 0 : static_cast<std::size_t>(2 * pairs));
  const float* turns = turning.turns + b * turning.batch_stride + begin * turning.token_stride;

  kernels::cpu::RotateRows<float, float> work;
  work.out = rows + turning.first;
  work.x = work.out;
  work.cosines = turns;
  work.sines = turns + turning.token_stride / 2;
  work.pairs = pairs;
  work.blocks = form.blocks;
  work.read = places.read;
  work.write = places.write;
  work.inner = {end - begin, stride, stride, turning.token_stride};
  work.scratch = scratch.empty() ? nullptr : scratch.data();
  kernels::cpu::rotate_rows(work);
}

}  // namespace posenc::attend::cpu
