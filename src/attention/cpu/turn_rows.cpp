#include "attention/cpu/turn_rows.h"

#include "kernels/cpu/rotate_rows.h"

namespace posenc::attend::cpu {

void turn_rows(const Turning& turning, std::int64_t b, std::int64_t begin, std::int64_t end, std::int64_t stride,
               float* rows) {
  const std::int64_t blocks = turning.form->blocks, pairs = turning.pairs / blocks;
  const PairPlacement places = placement_of(turning.form->layout, pairs);
  kernels::cpu::RotateRows<float, float> job;
  job.x = job.out = rows + turning.first;
  job.cosines = turning.turns + b * turning.batch_stride + begin * 2 * turning.pairs;
  job.sines = job.cosines + turning.pairs;
  job.pairs = pairs;
  job.blocks = blocks;
  job.read = places.read;
  job.write = places.write;
  job.inner = {end - begin, stride, stride, 2 * turning.pairs};
  std::vector<float> scratch(places.read == places.write ? 0 : static_cast<std::size_t>(2 * pairs));
  job.scratch = scratch.empty() ? nullptr : scratch.data();
  kernels::cpu::rotate_rows(job);
}

}  // namespace posenc::attend::cpu
