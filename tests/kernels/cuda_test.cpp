// Tensors on a GPU: the same bytes as the cpu backend, in the shapes that the fast kernels support and in odd ones.
// The other tests that run on every backend use copies of host tensors; here the tensors are on the GPU.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <regex>

#include "backends.h"
#if POSENC_CUDA
#include "kernels/cuda/module.h"
#endif
#include "kernels/cuda_values.h"
#include "numerics/narrow.h"
#include "posenc/cuda.h"
#include "posenc/posenc.h"

namespace posenc {
namespace {

using tests::random_values;
using tests::same_bytes;

template <class T> std::size_t first_difference(const std::vector<T>& a, const std::vector<T>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return i;
  }
  return a.size();
}
#define EXPECT_SAME_BYTES(got, want) \
  EXPECT_TRUE(same_bytes(got, want)) << "first at " << first_difference(got, want) << " of " << (want).size()

TensorView on_gpu(const cuda::Memory& memory, DataType type, const Extents& shape) {
  return on(Device::kCuda, TensorView(memory.as<void>(), type, shape));
}

struct RotateCase {
  std::int64_t batch, sequence, heads, key_heads, features, dims;
  PairLayout layout;
};

template <class T> void expect_rotation_of_the_cpu(const RotateCase& one, Rotation form, const Positions& positions) {
  form.layout = one.layout;
  const Extents q_shape = {one.batch, one.sequence, one.heads, one.features},
                k_shape = {one.batch, one.sequence, one.key_heads, one.features};
  auto q = random_values<T>(count_of(q_shape), 1), k = random_values<T>(count_of(k_shape), 2);
  if (q.size() > 9)
    q[3] = numerics::narrow<T>(std::numeric_limits<double>::infinity()),
    q[q.size() - 5] = numerics::narrow<T>(std::numeric_limits<double>::quiet_NaN());
  const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k);
  const auto heads_second = [](const TensorView& x) { return swap_axes(x, 1, 2); };
  const DataType type = data_type_of<T>();
  // The ids may be the GPU's: the cpu gets a copy.
  Positions on_host = positions;
  std::vector<std::int64_t> ids(positions.ids.size());
  cuda::Memory gpu_ids(positions.ids.size_bytes());
  Positions there = positions;
  if (!positions.ids.empty()) {
    ids.assign(positions.ids.begin(), positions.ids.end());
    on_host.ids = ids;
    if (positions.device == Device::kCuda) {
      gpu_ids.write(ids.data(), positions.ids.size_bytes());
      there.ids = {gpu_ids.as<const std::int64_t>(), ids.size()};
    }
  }
  on_host.device = Device::kHost;
  rotate(QueryKey<TensorView>{heads_second(on_gpu(gpu_q, type, q_shape)), heads_second(on_gpu(gpu_k, type, k_shape))},
         there, form);
  synchronize();
  rotate(QueryKey<TensorView>{heads_second(view(q.data(), q_shape)), heads_second(view(k.data(), k_shape))}, on_host,
         form);
  EXPECT_SAME_BYTES(gpu_q.values<T>(q.size()), q);
  EXPECT_SAME_BYTES(gpu_k.values<T>(k.size()), k);
}

template <class T> void expect_rotations_of_the_cpu() {
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
    for (const RotateCase& one : std::vector<RotateCase>{{2, 37, 32, 8, 128, 128, layout},
                                                         {1, 300, 28, 4, 128, 128, layout},
                                                         {1, 520, 32, 8, 128, 128, layout},  // past "few"
                                                         {2, 1100, 7, 1, 64, 64, layout},
                                                         {3, 19, 7, 1, 64, 64, layout},
                                                         {2, 21, 71, 3, 96, 96, layout},
                                                         {2, 11, 5, 5, 256, 256, layout},
                                                         {2, 33, 8, 2, 128, 64, layout},
                                                         {1, 9, 3, 2, 80, 20, layout}}) {
      SCOPED_TRACE(::testing::Message() << choice_name(layout) << ' ' << one.features << ' ' << one.dims);
      const std::int64_t dims = one.dims, tokens = one.batch * one.sequence;
      std::vector<std::int64_t> ids;
      for (std::int64_t t = 0; t < tokens; ++t) ids.push_back((t * 7919 + 12345) % 131072);
      expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims}), {.first = 131'000});
      expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims, .base = 5e5, .sign = -1}), {.ids = ids});
      expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims}), {.ids = ids, .device = Device::kCuda});
      expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims, .scaling = YarnScaling{.factor = 4}}),
                                    {.first = std::int64_t{1} << 52});
      expect_rotation_of_the_cpu<T>(
          one, prepare(Rope{.dims = dims, .scaling = YarnScaling{.factor = 4}}, {.numerics = Numerics::kHfF32}),
          {.first = 70'000});
      expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims, .scaling = XposScaling{}}), {.first = 3});
      if (dims % 8 == 0) {
        const std::vector<std::int64_t> sections = {dims / 4, dims / 8, dims / 8};
        std::vector<std::int64_t> three;
        for (std::int64_t t = 0; t < 3 * tokens; ++t) three.push_back((t * 104729 + 17) % 8192);
        expect_rotation_of_the_cpu<T>(one, prepare(Rope{.dims = dims, .sections = sections}),
                                      {.ids = three, .axes = 3});
      }
    }
  }
}
TEST(Cuda, RotatesF32LikeTheCpu) {
  SKIP_WITHOUT_CUDA();
  expect_rotations_of_the_cpu<float>();
}
TEST(Cuda, RotatesBf16LikeTheCpu) {
  SKIP_WITHOUT_CUDA();
  expect_rotations_of_the_cpu<BFloat16>();
}
TEST(Cuda, RotatesF16LikeTheCpu) {
  SKIP_WITHOUT_CUDA();
  expect_rotations_of_the_cpu<Half>();
}

TEST(Cuda, RotatesByTablesLikeTheCpu) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t tokens = 70, heads = 6, dims = 64;
  const auto cosines = random_values<float>(tokens * dims / 2, 3), sines = random_values<float>(tokens * dims / 2, 4);
  const cuda::Memory gpu_cosines = cuda::memory_of(cosines), gpu_sines = cuda::memory_of(sines);
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    auto x = random_values<BFloat16>(tokens * heads * dims, 5);
    const cuda::Memory gpu_x = cuda::memory_of(x);
    Rotation form, gpu_form;
    form.layout = gpu_form.layout = layout;
    form.source = RotationTable{view(cosines.data(), {tokens, dims / 2}), view(sines.data(), {tokens, dims / 2})};
    gpu_form.source = RotationTable{on_gpu(gpu_cosines, DataType::kF32, {tokens, dims / 2}),
                                    on_gpu(gpu_sines, DataType::kF32, {tokens, dims / 2})};
    rotate(swap_axes(view(x.data(), {tokens, heads, dims}), 0, 1), {}, form);
    rotate(swap_axes(on_gpu(gpu_x, DataType::kBF16, {tokens, heads, dims}), 0, 1), {}, gpu_form);
    synchronize();
    EXPECT_SAME_BYTES(gpu_x.values<BFloat16>(x.size()), x);
  }
}

template <class T> void expect_table_of_the_cpu(std::int64_t rows, const Sinusoidal& scheme, std::int64_t first) {
  const Addition form = prepare(scheme);
  std::vector<T> want(static_cast<std::size_t>(rows * scheme.width));
  tabulate(view(want.data(), {rows, scheme.width}), {.first = first}, form);
  const cuda::Memory gpu(want.size() * sizeof(T));
  cuda::fill(gpu.as<void>(), 0xFF, gpu.size());
  tabulate(on_gpu(gpu, data_type_of<T>(), {rows, scheme.width}), {.first = first}, form);
  synchronize();
  EXPECT_SAME_BYTES(gpu.values<T>(want.size()), want);
}
TEST(Cuda, TablesHaveTheBytesOfTheCpu) {
  SKIP_WITHOUT_CUDA();
  for (const std::int64_t first : {std::int64_t{0}, (std::int64_t{1} << 24) - 100, (std::int64_t{1} << 31) - 777,
                                   std::int64_t{1} << 40, (std::int64_t{1} << 52) + 12345}) {
    for (const auto layout : {WaveLayout::kInterleaved, WaveLayout::kSinCos}) {
      SCOPED_TRACE(::testing::Message() << first << ' ' << choice_name(layout));
      expect_table_of_the_cpu<float>(1021, {.width = 1024, .layout = layout}, first);
      expect_table_of_the_cpu<float>(77, {.width = 18, .layout = layout}, first);
      expect_table_of_the_cpu<double>(9, {.width = 64, .layout = layout}, first);
      expect_table_of_the_cpu<BFloat16>(99, {.width = 256, .layout = layout}, first);
      expect_table_of_the_cpu<Half>(99, {.width = 256, .layout = layout}, first);
    }
  }
}

template <class T> void expect_sums_of_the_cpu() {
  for (const std::int64_t batch : {std::int64_t{1}, std::int64_t{8}, std::int64_t{11}}) {
    const std::int64_t tokens = 53, width = 768;
    const Extents shape = {batch, tokens, width};
    auto x = random_values<T>(count_of(shape), 6);
    x[7] = numerics::narrow<T>(-std::numeric_limits<double>::infinity()),
    x[x.size() - 3] = numerics::narrow<T>(std::numeric_limits<double>::quiet_NaN());
    const auto table = random_values<T>(2 * tokens * width, 7);
    const cuda::Memory gpu_table = cuda::memory_of(table);
    const Addition waves = prepare(Sinusoidal{.width = width});
    const Addition rows{width, Rows{view(table.data(), {2 * tokens, width}), 2}};
    const Addition gpu_rows{width, Rows{on_gpu(gpu_table, data_type_of<T>(), {2 * tokens, width}), 2}};
    std::vector<std::int64_t> ids;
    for (std::int64_t t = 0; t < batch * tokens; ++t) ids.push_back(t * 31 % (2 * tokens - 2));
    for (const Positions& positions : {Positions{.first = 3}, Positions{.ids = ids}}) {
      const cuda::Memory one = cuda::memory_of(x), other = cuda::memory_of(x);
      auto want_one = x, want_other = x;
      add(view(want_one.data(), shape), positions, waves);
      add(view(want_other.data(), shape), positions, rows);
      add(on_gpu(one, data_type_of<T>(), shape), positions, waves);
      add(on_gpu(other, data_type_of<T>(), shape), positions, gpu_rows);
      synchronize();
      EXPECT_SAME_BYTES(one.values<T>(x.size()), want_one);
      EXPECT_SAME_BYTES(other.values<T>(x.size()), want_other);
    }
  }
}
TEST(Cuda, SumsHaveTheBytesOfTheCpu) {
  SKIP_WITHOUT_CUDA();
  expect_sums_of_the_cpu<float>();
  expect_sums_of_the_cpu<BFloat16>();
  expect_sums_of_the_cpu<Half>();
  expect_sums_of_the_cpu<double>();
}

TEST(Cuda, WorksOnAStreamAndInAGraph) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t tokens = 64, heads = 8, dims = 128;
  const Rotation form = prepare(Rope{.dims = dims});
  auto x = random_values<BFloat16>(tokens * heads * dims, 8);
  const cuda::Memory gpu = cuda::memory_of(x);
  const TensorView there = swap_axes(on_gpu(gpu, DataType::kBF16, {tokens, heads, dims}), 0, 1);
  const cuda::Stream stream;
  rotate(there, {.first = 5}, form, stream.run());
  synchronize(stream.run());
  const auto once = [&] { rotate(swap_axes(view(x.data(), {tokens, heads, dims}), 0, 1), {.first = 5}, form); };
  once();
  EXPECT_SAME_BYTES(gpu.values<BFloat16>(x.size()), x);
  // Captured once, launched twice, 40 rotations each: every one needs what the one before wrote.
  cuda::time_in_graph([&](const posenc::Run& run) { rotate(there, {.first = 5}, form, run); }, 40);
  for (int n = 0; n < 80; ++n) once();
  EXPECT_SAME_BYTES(gpu.values<BFloat16>(x.size()), x);
}

TEST(Cuda, IdsOutOfRangeAreAnErrorOfTheNextWait) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t tokens = 4, dims = 128;
  const auto x = random_values<float>(tokens * dims, 9);
  const cuda::Memory gpu = cuda::memory_of(x);
  const TensorView there = on_gpu(gpu, DataType::kF32, {tokens, dims});
  const std::vector<std::int64_t> bad = {0, 1, -7, 3};
  const cuda::Memory ids = cuda::memory_of(bad);
  const Positions positions{.ids = {ids.as<const std::int64_t>(), bad.size()}, .device = Device::kCuda};
  rotate(there, positions, prepare(Rope{.dims = dims}));
  EXPECT_THROW(synchronize(), Error);
  EXPECT_NO_THROW(synchronize()) << "said once";
  const Addition rows{dims, Rows{on_gpu(gpu, DataType::kF32, {3, dims}), 0}};
  const cuda::Memory other = cuda::memory_of(x);
  add(on_gpu(other, DataType::kF32, {tokens, dims}), {.ids = positions.ids, .device = Device::kCuda}, rows);
  EXPECT_THROW(synchronize(), Error);
}

TEST(Cuda, ShiftsKeysOfACache) {
  SKIP_WITHOUT_CUDA();
  const Extents shape = {2, 3, 40, 128};
  for (const Rope& rope : {Rope{.dims = 128}, Rope{.dims = 64, .layout = PairLayout::kInterleaved, .first_dim = 64},
                           Rope{.dims = 128, .scaling = YarnScaling{.factor = 16, .original_length = 64}},
                           Rope{.dims = 128, .scaling = XposScaling{}}}) {
    const Rotation form = prepare(rope);
    const auto check = [&](auto kind) {
      using T = decltype(kind);
      for (const std::int64_t by : {-67, 64, 4096}) {
        auto k = random_values<T>(count_of(shape), 21);
        const cuda::Memory gpu = cuda::memory_of(k);
        shift(on_gpu(gpu, data_type_of<T>(), shape), by, form);
        synchronize();
        shift(view(k.data(), shape), by, form);
        EXPECT_SAME_BYTES(gpu.values<T>(k.size()), k) << by;
      }
    };
    check(BFloat16{});
    check(float{});
    check(double{});
  }
}

// In double and in another order than the host's, so that floats are the same but for a sum next to a midpoint.
TEST(Cuda, GradientsOfABias) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t batch = 3, heads = 5, queries = 70, keys = 131;
  const Extents shape = {batch, heads, queries, keys};
  const auto d_out = random_values<BFloat16>(count_of(shape), 31);
  const cuda::Memory gpu_d_out = cuda::memory_of(d_out);
  std::vector<double> table(32 * static_cast<std::size_t>(heads), 0.5);
  const cuda::Memory gpu_table = cuda::memory_of(table);
  Fire fire{.threshold = 12};
  fire.hidden_weights = {1.0, -2.0, 0.5, 3.0, 0.1};
  fire.hidden_biases = {0.1, 1.3, -0.2, 0.0, -0.05};
  for (int i = 0; i < 25; ++i) fire.output_weights.push_back(std::sin(i + 0.5));
  fire.output_biases = {0.05, -0.4, 0.0, 1.0, 2.0};
  const Extents in_table = {32, heads};
  const auto of_table = [&](const ConstTensorView& weights) {
    return prepare(T5{.heads = static_cast<int>(heads)}, {.weights = weights});
  };
  DistanceTable wide;  // more rows than a block has threads
  wide.axes.push_back({-300, {}, true});
  for (std::int64_t at = 0; at <= 600; ++at) wide.axes[0].entries.push_back(at);
  wide.values.assign(601 * static_cast<std::size_t>(heads), 0.25);
  struct Case {
    Bias here, there;
    Extents shape;
  };
  const Case cases[] = {
      {prepare(Alibi{.heads = static_cast<int>(heads)}), prepare(Alibi{.heads = static_cast<int>(heads)}), {heads}},
      {of_table(view(table.data(), in_table)), of_table(on_gpu(gpu_table, DataType::kF64, in_table)), in_table},
      {prepare(fire, {.length = 400}), prepare(fire, {.length = 400}), {2 * 5 + 5 * heads + heads}},
      {Bias{heads, wide}, Bias{heads, wide}, {601, heads}}};
  for (const Case& one : cases) {
    std::vector<double> want(static_cast<std::size_t>(count_of(one.shape)), 0.5);
    const cuda::Memory got = cuda::memory_of(want), again = cuda::memory_of(want);
    const QueryKey<Positions> where{{.first = 61}, {}};
    for (const cuda::Memory* to : {&got, &again}) {
      bias_backward(on_gpu(*to, DataType::kF64, one.shape), on_gpu(gpu_d_out, DataType::kBF16, shape), where,
                    one.there);
    }
    synchronize();
    bias_backward(view(want.data(), one.shape), view(d_out.data(), shape), where, one.here);
    const auto found = got.values<double>(want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      ASSERT_NEAR(found[i], want[i], 1e-9) << i << " of " << to_string(one.shape);
    }
    EXPECT_SAME_BYTES(again.values<double>(want.size()), found);
  }
}

// Copied there and back. The last outputs are slices of one array, in which nothing but they may change.
TEST(Cuda, TensorsOfTheHost) {
  SKIP_WITHOUT_CUDA();
  const Extents q_shape = {2, 5500, 8, 128}, k_shape = {2, 5500, 3, 128};
  const auto q = random_values<float>(count_of(q_shape), 51), k = random_values<float>(count_of(k_shape), 52);
  std::vector<std::int64_t> ids;
  for (std::int64_t n = 0; n < 2 * 5500; ++n) ids.push_back(n * 37 % 100003);
  const Rotation form = prepare(Rope{.dims = 128, .scaling = YarnScaling{.factor = 4, .original_length = 64}});
  for (const Positions& positions : {Positions{.first = 9}, Positions{.ids = ids}}) {
    std::vector<std::vector<float>> made;
    for (const char* backend : {"cpu", "cuda"}) {
      force_backend(backend);
      auto to_q = q, to_k = k;
      rotate(QueryKey<TensorView>{swap_axes(view(to_q.data(), q_shape), 1, 2),
                                  swap_axes(view(to_k.data(), k_shape), 1, 2)},
             positions, form);
      std::vector<float> sum(q.size());
      const Extents rows = {2, 5500, 1024};
      add(view(sum.data(), rows), view(q.data(), rows), positions, prepare(Sinusoidal{.width = 1024}));
      std::vector<float> table(q.size());
      tabulate(view(table.data(), rows), positions, prepare(Sinusoidal{.width = 1024}));
      auto both = q;  // [batch, tokens, 4 of q, 1 of k, 3 others; features]
      const TensorView heads = swap_axes(view(both.data(), q_shape), 1, 2);
      rotate(QueryKey<TensorView>{slice(heads, 1, 0, 4), slice(heads, 1, 4, 1)}, positions, form);
      for (auto* one : {&to_q, &to_k, &sum, &table, &both}) made.push_back(std::move(*one));
    }
    force_backend("");
    for (std::size_t n = 0; n < 5; ++n) EXPECT_SAME_BYTES(made[n + 5], made[n]) << n;
  }
  force_backend("");
}

// Tables of the form lie on the host too: one row for each position, or one for each token.
TEST(Cuda, TensorsOfTheHostWithTables) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t batch = 2, tokens = 5500, pairs = 64;
  const Extents q_shape = {batch, 8, tokens, 2 * pairs}, rows = {batch, tokens, 1024};
  const auto q = random_values<float>(count_of(q_shape), 61);
  const auto cosines = random_values<float>(batch * tokens * pairs, 62),
             sines = random_values<float>(batch * tokens * pairs, 63),
             learned = random_values<float>(2 * tokens * 1024, 64);
  Rotation by_position, by_token;
  by_position.source =
      RotationTable{view(cosines.data(), {batch * tokens, pairs}), view(sines.data(), {batch * tokens, pairs})};
  by_token.source =
      RotationTable{view(cosines.data(), {batch, tokens, pairs}), view(sines.data(), {batch, tokens, pairs})};
  const Addition addition{1024, Rows{view(learned.data(), {2 * tokens, 1024}), 2}};
  std::vector<std::vector<float>> made;
  for (const char* backend : {"cpu", "cuda"}) {
    force_backend(backend);
    auto one = q, other = q, sum = q;
    rotate(view(one.data(), q_shape), {.first = 77}, by_position);
    rotate(view(other.data(), q_shape), {}, by_token);
    add(view(sum.data(), rows), {.first = 5}, addition);
    for (auto* values : {&one, &other, &sum}) made.push_back(std::move(*values));
  }
  force_backend("");
  for (std::size_t n = 0; n < 3; ++n) EXPECT_SAME_BYTES(made[n + 3], made[n]) << n;
}

// Refused, and nothing is written; what was copied before is freed.
TEST(Cuda, RefusesTensorsOfTheHostLargerThanFreeMemory) {
  SKIP_WITHOUT_CUDA();
  constexpr std::size_t kLeft = std::size_t{256} << 20;
  const Extents shape = {262'144, 384};  // 384 MiB
  std::vector<float> sum(static_cast<std::size_t>(count_of(shape)), 1.0F);
  const auto refusal = [&]() -> std::string {
    try {
      add(view(sum.data(), shape), {.first = 9}, prepare(Sinusoidal{.width = 384}));
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  force_backend("cuda");
  {
    const cuda::Memory ballast(cuda::free_bytes() - kLeft);
    const std::string told = refusal();
    EXPECT_TRUE(told.starts_with("cuda: copies of the tensors on the host need at least 402653184 bytes, but "))
        << told;
    EXPECT_TRUE(
        told.ends_with(" of the GPU's memory are free; pass tensors on the GPU, or fewer heads, sequences or "
                       "tokens at a time"))
        << told;
    for (const float value : sum) ASSERT_EQ(value, 1.0F);
  }
  EXPECT_EQ(refusal(), "");
  force_backend("");
}

TEST(Cuda, KernelsUseNoLocalMemory) {
  SKIP_WITHOUT_CUDA();
  for (const cuda::KernelReport& report : cuda::assemble_all()) {
    // "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads", once for each function that is not inlined. A few
    // numbers of the largest kernels are kept aside, out of their inner loops: 26 of them in those for packed sequences.
    constexpr int kMostBytes = 104;
    const std::regex spills("([0-9]+) bytes spill stores");
    for (std::sregex_iterator at(report.log.begin(), report.log.end(), spills); at != std::sregex_iterator(); ++at) {
      EXPECT_LE(std::stoi((*at)[1].str()), kMostBytes) << report.kernel << ": " << report.log;
    }
    EXPECT_EQ(report.log.find("refused"), std::string::npos) << report.kernel << ": " << report.log;
    EXPECT_EQ(report.log.find("C75"), std::string::npos) << report.kernel << ": " << report.log;
  }
}

// --- what can be seen without a GPU --------------------------------------------------------------------------------

#if POSENC_CUDA
TEST(Cuda, HoldsTheTextOfEveryKernel) {
  EXPECT_GT(kernels::cuda::ptx_modules().size(), 20u);  // one case of each, or all
  for (const kernels::cuda::PtxModule& module : kernels::cuda::ptx_modules()) {
    const std::string_view text = kernels::cuda::text_of(module);
    EXPECT_TRUE(text.starts_with(".version 8.1\n.target sm_")) << module.name << ": " << text.substr(0, 40);
    EXPECT_TRUE(text.ends_with("}\n")) << module.name;
    const std::string entry = ".visible .entry " + std::string(module.kernel) + "(";
    EXPECT_NE(text.find(entry), std::string_view::npos) << module.name;
    EXPECT_EQ(text.find("%rd+"), std::string_view::npos) << module.name;
    // Registers 1 … count − 1 of a function are declared as %rd<count>, and the last is used.
    const std::string declared = ".b64 %rd<";
    std::size_t at = text.find(declared);
    EXPECT_NE(at, std::string_view::npos) << module.name;
    while (at < text.size()) {
      const std::size_t next = text.find(declared, at + 1);
      const std::string_view body = text.substr(at, next - at);
      const int count = std::atoi(body.data() + declared.size());
      EXPECT_NE(body.find("%rd" + std::to_string(count - 1)), std::string_view::npos) << module.name << ' ' << count;
      EXPECT_EQ(body.find("%rd" + std::to_string(count)), std::string_view::npos) << module.name << ' ' << count;
      at = next;
    }
  }
}
#endif

TEST(Cuda, TensorsOfTwoDevicesAreRefused) {
  std::vector<float> x(128);
  const TensorView here = view(x.data(), {1, 128});
  const Rotation form = prepare(Rope{.dims = 128});
  EXPECT_THROW(rotate(here, on(Device::kCuda, here), {}, form), Error);
  const std::vector<std::int64_t> ids = {0};
  EXPECT_THROW(rotate(here, {.ids = ids, .device = Device::kCuda}, form), Error);
}

TEST(Cuda, SaysWhyItIsAbsent) {
  const std::string reason = why_absent("cuda");
  EXPECT_EQ(reason.find('\n'), std::string::npos);
  EXPECT_EQ(why_absent("reference"), "");
  EXPECT_THROW(why_absent("abacus"), Error);
  if (reason.empty()) return;
  EXPECT_THROW(force_backend("cuda"), Error);
  std::vector<float> x(128);
  try {
    rotate(on(Device::kCuda, view(x.data(), {1, 128})), {}, prepare(Rope{.dims = 128}));
    FAIL() << "a tensor on a GPU that is not there";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace posenc
