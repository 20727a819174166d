// The exact sinusoidal table [131072, 1024], against plain stores to the same memory.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "benchmarks/limits.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using posenc::DataType;

template <DataType type> void tabulate(benchmark::State& state) {
  const posenc::Extents shape = {state.range(0), 1024};
  posenc::set_threads(static_cast<int>(state.range(1)));
  const posenc::limits::Memory out(static_cast<std::size_t>(count_of(shape) * size_of(type)));
  const posenc::Addition form = prepare(posenc::Sinusoidal{.width = shape.back(0)});
  double seconds = 0, limit_seconds = 0;
  for (auto _ : state) {
    limit_seconds += posenc::limits::write_once(out.bytes(), posenc::threads());
    const auto begin = std::chrono::steady_clock::now();
    posenc::tabulate({out.as<void>(), type, shape}, {}, form);
    const double duration = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.SetIterationTime(duration);
    seconds += duration;
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(out.bytes().size()));
  state.counters["of_limit"] = limit_seconds / seconds;
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->ArgNames({"rows", "threads"})->UseManualTime()->Unit(benchmark::kMillisecond);
  for (const int rows : {1024, 131072}) {
    bench->Args({rows, 1});
    if (posenc::threads() > 1) bench->Args({rows, posenc::threads()});
  }
}
BENCHMARK(tabulate<DataType::kF32>)->Name("tabulate/f32")->Apply(shapes);
BENCHMARK(tabulate<DataType::kF64>)->Name("tabulate/f64")->Apply(shapes);
BENCHMARK(tabulate<DataType::kBF16>)->Name("tabulate/bf16")->Apply(shapes);
BENCHMARK(tabulate<DataType::kF16>)->Name("tabulate/f16")->Apply(shapes);

}  // namespace
