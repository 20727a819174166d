// x += p for x [8, 4096, 1024], against reading and writing x alone.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "benchmarks/limits.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using posenc::DataType;

enum class Table { kReady, kMadeInside };

template <DataType type, Table source> void add(benchmark::State& state) {
  const posenc::Extents shape = {8, 4096, 1024};
  const posenc::Extents table_shape = {shape[1], shape[2]};
  posenc::set_threads(static_cast<int>(state.range(0)));
  const posenc::limits::Memory x(static_cast<std::size_t>(count_of(shape) * size_of(type)));
  const posenc::limits::Memory table(static_cast<std::size_t>(count_of(table_shape) * size_of(type)));
  posenc::Addition form = prepare(posenc::Sinusoidal{.width = shape[2]});
  if (source == Table::kReady) {
    const posenc::TensorView rows(table.as<void>(), type, table_shape);
    posenc::tabulate(rows, {}, form);
    form.source = posenc::Rows{rows, 0};
  }
  double seconds = 0, limit_seconds = 0;
  for (auto _ : state) {
    limit_seconds += posenc::limits::change_in_place_once(x.bytes(), posenc::threads());
    const auto begin = std::chrono::steady_clock::now();
    posenc::add({x.as<void>(), type, shape}, {}, form);
    const double duration = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    state.SetIterationTime(duration);
    seconds += duration;
  }
  state.SetBytesProcessed(2 * state.iterations() * static_cast<std::int64_t>(x.bytes().size()));
  state.counters["of_limit"] = limit_seconds / seconds;
}

void thread_counts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->UseManualTime()->Unit(benchmark::kMillisecond)->Arg(1);
  if (posenc::threads() > 1) bench->Arg(posenc::threads());
}
BENCHMARK(add<DataType::kF32, Table::kReady>)->Name("add/f32/ready")->Apply(thread_counts);
BENCHMARK(add<DataType::kF32, Table::kMadeInside>)->Name("add/f32/inside")->Apply(thread_counts);
BENCHMARK(add<DataType::kF64, Table::kReady>)->Name("add/f64/ready")->Apply(thread_counts);
BENCHMARK(add<DataType::kF64, Table::kMadeInside>)->Name("add/f64/inside")->Apply(thread_counts);
BENCHMARK(add<DataType::kBF16, Table::kReady>)->Name("add/bf16/ready")->Apply(thread_counts);
BENCHMARK(add<DataType::kBF16, Table::kMadeInside>)->Name("add/bf16/inside")->Apply(thread_counts);
BENCHMARK(add<DataType::kF16, Table::kReady>)->Name("add/f16/ready")->Apply(thread_counts);
BENCHMARK(add<DataType::kF16, Table::kMadeInside>)->Name("add/f16/inside")->Apply(thread_counts);

}  // namespace
