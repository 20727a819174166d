// The backend of the WebAssembly modules: the reference, except for tables of waves in float32 and below, where the sine
// and the cosine of an angle share its reduction, and doubles decide all but a few roundings. The bytes are the same.

#include "kernels/element.h"
#include "kernels/reference/functions.h"

namespace posenc::kernels {

namespace {

template <class T> void write_waves(const AddJob& job, const Waves& waves, Outcome& outcome) {
  std::vector<numerics::Angle> angles(waves.waves.size());
  std::vector<numerics::Reduced> reduced(waves.waves.size());
  for (std::int64_t b = 0; b < job.out.batch; ++b) {
    for (std::int64_t t = 0; t < job.out.sequence; ++t) {
      for (std::size_t wave = 0; wave < angles.size(); ++wave) {
        angles[wave] = angle_of(waves, wave, job.positions, b, t);
        reduced[wave] = numerics::reduce(angles[wave]);
      }
      T* const out = job.out.token<T>(b, t);
      for (std::size_t c = 0; c < waves.columns.size(); ++c) {
        const WaveColumn column = waves.columns[c];
        const std::size_t wave = column.wave;
        T& element = out[static_cast<std::int64_t>(c) * job.out.column_stride];
        if (!numerics::round_wave(element, angles[wave], reduced[wave], column.quarter, waves.scale)) {
          outcome = {false, job.positions.at(b, t, 0), static_cast<std::int64_t>(c)};
        }
      }
    }
  }
}

Outcome add_waves(const AddJob& job) {
  const auto* const waves = std::get_if<Waves>(&job.form->source);
  if (waves == nullptr || job.x != nullptr || job.out.type == DataType::kF64) return reference::add(job);
  Outcome outcome;
  with_type(job.out.type, [&](auto kind) { write_waves<decltype(kind)>(job, *waves, outcome); });
  return outcome;
}

}  // namespace

const Backend kWasmBackend = {
    "wasm", &add_waves, &reference::add_backward, &reference::rotate, &reference::bias, &reference::bias_backward};

}  // namespace posenc::kernels
