// Causal attention [1, 8, 2048, 64] with every way position enters, its gradients, and decoding with a cache of 32768
// keys, against SGEMM or against reading the cache.

#include <benchmark/benchmark.h>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <vector>

#include "benchmarks/limits.h"
#include "posenc/attention.h"
#include "posenc/backend.h"
#include "posenc/scheme.h"

namespace {

using posenc::DataType;
constexpr std::int64_t kHeads = 8, kFeatures = 64;

enum class Position { kNone, kAlibi, kT5, kRope };

std::vector<float>& buckets() {
  static std::vector<float> table = [] {
    std::vector<float> values(32 * kHeads);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::sin(static_cast<float>(i));
    return values;
  }();
  return table;
}

posenc::Form form_of(Position position) {
  switch (position) {
    case Position::kAlibi:
      return prepare(posenc::Alibi{.heads = kHeads});
    case Position::kT5:
      return prepare(posenc::T5{.heads = kHeads, .bidirectional = false},
                     {.weights = posenc::view(static_cast<const float*>(buckets().data()), {32, kHeads})});
    case Position::kRope:
      return prepare(posenc::Rope{.dims = kFeatures});
    default:
      return posenc::Nothing{};
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Values of about 1/4 in f32, f16 and bf16 alike.
void fill(const posenc::limits::Memory& memory) {
  for (std::size_t i = 0; i < memory.bytes().size(); ++i) {
    memory.bytes()[i] = static_cast<std::byte>(i % 2 == 1 ? 0x3e | ((i * 2654435761U >> 13) & 0x80) : i >> 3);
  }
}

template <DataType type, Position position, bool with_gradients> void causal(benchmark::State& state) {
  const std::int64_t tokens = 2048;
  const posenc::Extents shape = {1, kHeads, tokens, kFeatures};
  posenc::set_threads(static_cast<int>(state.range(0)));
  const std::int64_t size = count_of(shape) * size_of(type);
  const posenc::limits::Memory memory(static_cast<std::size_t>(8 * size));
  fill(memory);
  const auto at = [&](std::int64_t index) {
    return posenc::TensorView(memory.bytes().data() + index * size, type, shape);
  };
  const posenc::AttentionOptions options{.position = form_of(position), .causal = true};
  const bool has_limit = posenc::limits::has_sgemm();
  const posenc::limits::Sgemm sgemm(1024);
  double seconds = 0, limit_seconds = 0;
  for (auto _ : state) {
    if (has_limit) limit_seconds += sgemm.once(posenc::threads());
    const auto begin = std::chrono::steady_clock::now();
    if (with_gradients) {
      posenc::attention_backward({.q = at(5), .k = at(6), .v = at(7)}, at(4), {at(0), at(1), at(2)}, options);
    } else {
      posenc::attention(at(3), at(0), at(1), at(2), options);
    }
    const double duration = seconds_since(begin);
    state.SetIterationTime(duration);
    seconds += duration;
  }
  const auto pairs = static_cast<double>(kHeads * tokens * (tokens + 1) / 2);
  // two products forward; five backward, and two more because scores are made again: five are counted
  const double operations =
      (with_gradients ? 10.0 : 4.0) * kFeatures * pairs * static_cast<double>(state.iterations());
  state.counters["gflops"] = operations / seconds * 1e-9;
  if (!has_limit) return;
  const double limit = sgemm.operations() * static_cast<double>(state.iterations()) / limit_seconds;
  state.counters["sgemm_gflops"] = limit * 1e-9;
  state.counters["of_limit"] = operations / seconds / limit;
}

template <DataType type, Position position> void decode(benchmark::State& state) {
  const posenc::Extents keys = {1, kHeads, 32768, kFeatures}, query = {1, kHeads, 1, kFeatures};
  posenc::set_threads(static_cast<int>(state.range(0)));
  const std::int64_t size = count_of(keys) * size_of(type), small = count_of(query) * size_of(type);
  const posenc::limits::Memory memory(static_cast<std::size_t>(2 * size + 2 * small));
  fill(memory);
  std::byte* const data = memory.bytes().data();
  const posenc::AttentionOptions options{.position = form_of(position)};
  double seconds = 0, limit_seconds = 0;
  for (auto _ : state) {
    limit_seconds +=
        posenc::limits::read_once(memory.bytes().first(static_cast<std::size_t>(2 * size)), posenc::threads());
    const auto begin = std::chrono::steady_clock::now();
    posenc::attention({data + 2 * size + small, type, query}, {data + 2 * size, type, query}, {data, type, keys},
                      {data + size, type, keys}, options);
    const double duration = seconds_since(begin);
    state.SetIterationTime(duration);
    seconds += duration;
  }
  state.SetBytesProcessed(state.iterations() * 2 * size);
  state.counters["of_limit"] = limit_seconds / seconds;
}

void thread_counts(benchmark::internal::Benchmark* bench) {
  bench->ArgName("threads")->UseManualTime()->Unit(benchmark::kMillisecond)->Arg(1);
  if (posenc::threads() > 1) bench->Arg(posenc::threads());
}
BENCHMARK(causal<DataType::kF32, Position::kNone, false>)->Name("attention/f32/none")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kAlibi, false>)->Name("attention/f32/alibi")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kT5, false>)->Name("attention/f32/t5")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kRope, false>)->Name("attention/f32/rope")->Apply(thread_counts);
BENCHMARK(causal<DataType::kBF16, Position::kAlibi, false>)->Name("attention/bf16/alibi")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF16, Position::kAlibi, false>)->Name("attention/f16/alibi")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kNone, true>)->Name("attention_backward/f32/none")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kAlibi, true>)->Name("attention_backward/f32/alibi")->Apply(thread_counts);
BENCHMARK(causal<DataType::kF32, Position::kT5, true>)->Name("attention_backward/f32/t5")->Apply(thread_counts);
BENCHMARK(decode<DataType::kF32, Position::kNone>)->Name("decode/f32/none")->Apply(thread_counts);
BENCHMARK(decode<DataType::kF32, Position::kAlibi>)->Name("decode/f32/alibi")->Apply(thread_counts);
BENCHMARK(decode<DataType::kBF16, Position::kAlibi>)->Name("decode/bf16/alibi")->Apply(thread_counts);

}  // namespace
