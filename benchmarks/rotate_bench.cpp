// Queries and keys [1, 4096, 32, 128] rotated in place, against reading and writing them alone.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cstdint>

#include "benchmarks/limits.h"
#include "posenc/apply.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using posenc::DataType;
using posenc::PairLayout;

enum class Table { kReady, kMadeInside };

template <DataType type, PairLayout layout, Table source> void rotate(benchmark::State& state) {
  const posenc::Extents shape = {1, 4096, 32, 128};  // [batch, sequence, heads, features]
  const posenc::Extents table_shape = {shape[1], shape[3] / 2};
  posenc::set_threads(static_cast<int>(state.range(0)));
  const std::int64_t count = count_of(shape);
  const posenc::limits::Memory x(static_cast<std::size_t>(2 * count * size_of(type)));
  const posenc::limits::Memory table(static_cast<std::size_t>(2 * count_of(table_shape)) * sizeof(float));
  posenc::Rotation form = prepare(posenc::Rope{.dims = shape[3], .layout = layout});
  if (source == Table::kReady) {
    const posenc::TensorView cosines = posenc::view(table.as<float>(), table_shape);
    const posenc::TensorView sines = posenc::view(table.as<float>() + count_of(table_shape), table_shape);
    posenc::tabulate(cosines, sines, {}, form);
    form.frequencies.clear();
    form.table = {cosines, sines};
  }
  std::byte* const k = x.bytes().data() + count * size_of(type);
  const posenc::QueryKey<posenc::TensorView> views = {swap_axes(posenc::TensorView(x.as<void>(), type, shape), 1, 2),
                                                      swap_axes(posenc::TensorView(k, type, shape), 1, 2)};
  double seconds = 0, limit_seconds = 0;
  for (auto _ : state) {
    limit_seconds += posenc::limits::change_in_place_once(x.bytes(), posenc::threads());
    const auto begin = std::chrono::steady_clock::now();
    posenc::rotate(views, {}, form);
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
constexpr PairLayout kHalves = PairLayout::kHalves, kInterleaved = PairLayout::kInterleaved;
BENCHMARK(rotate<DataType::kF32, kHalves, Table::kReady>)->Name("rotate/f32/halves/ready")->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF32, kHalves, Table::kMadeInside>)
    ->Name("rotate/f32/halves/inside")
    ->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF32, kInterleaved, Table::kReady>)
    ->Name("rotate/f32/interleaved/ready")
    ->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF32, kInterleaved, Table::kMadeInside>)
    ->Name("rotate/f32/interleaved/inside")
    ->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF64, kHalves, Table::kReady>)->Name("rotate/f64/halves/ready")->Apply(thread_counts);
BENCHMARK(rotate<DataType::kBF16, kHalves, Table::kReady>)->Name("rotate/bf16/halves/ready")->Apply(thread_counts);
BENCHMARK(rotate<DataType::kBF16, kHalves, Table::kMadeInside>)
    ->Name("rotate/bf16/halves/inside")
    ->Apply(thread_counts);
BENCHMARK(rotate<DataType::kBF16, kInterleaved, Table::kReady>)
    ->Name("rotate/bf16/interleaved/ready")
    ->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF16, kHalves, Table::kReady>)->Name("rotate/f16/halves/ready")->Apply(thread_counts);
BENCHMARK(rotate<DataType::kF16, kHalves, Table::kMadeInside>)
    ->Name("rotate/f16/halves/inside")
    ->Apply(thread_counts);

}  // namespace
