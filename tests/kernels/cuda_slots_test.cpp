// A cache on a GPU: the bytes that the host writes to its own, for every layout, type and kind of slots.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <random>

#if POSENC_CUDA
#include "kernels/cuda/module.h"
#endif
#include "kernels/cuda_values.h"
#include "numerics/narrow.h"
#include "posenc/cuda.h"
#include "posenc/posenc.h"

namespace posenc::cuda_slots_test {
namespace {

using tests::expect_same_bytes;
using tests::random_values;

// The largest difference relative to the larger of value and row, for results of a norm.
template <class T>
void expect_one_rounding(const std::vector<T>& got, const std::vector<T>& want, std::string_view what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  const double unit = sizeof(T) == 8 ? 1e-14 : sizeof(T) == 4 ? 4e-6 : std::is_same_v<T, Half> ? 0x1p-10 : 0x1p-7;
  std::size_t differ = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double one = numerics::widen(got[i]), other = numerics::widen(want[i]);
    if (one != other) ++differ;
    ASSERT_NEAR(one, other, unit * std::max(std::fabs(other), sizeof(T) == 2 ? 1e-2 : 1.0)) << what << " at " << i;
  }
  const double most = sizeof(T) == 2 ? 0.02 : 1;  // of those that may round to the other side
  EXPECT_LE(static_cast<double>(differ), most * static_cast<double>(want.size()) + 2) << what;
}

// Tensors of one side: on the host, or copies on the GPU.
class Side {
 public:
  explicit Side(Device device) : device_(device) {}
  template <class T> TensorView put(const std::vector<T>& values, const Extents& shape) {
    return on(device_, TensorView(keep(values.data(), values.size() * sizeof(T)), data_type_of<T>(), shape));
  }
  template <class T> std::span<const T> list(const std::vector<T>& values) {
    return {static_cast<const T*>(keep(values.data(), values.size() * sizeof(T))), values.size()};
  }
  template <class T> std::vector<T> get(const TensorView& view, std::size_t count) const {
    std::vector<T> values(count);
    if (device_ == Device::kHost) {
      std::memcpy(values.data(), view.data, count * sizeof(T));
      return values;
    }
    for (const cuda::Memory& memory : gpu_) {
      if (memory.as<void>() == view.data) memory.read(values.data(), count * sizeof(T));
    }
    return values;
  }
  Device device() const { return device_; }

 private:
  void* keep(const void* data, std::size_t bytes) {
    if (device_ == Device::kHost) {
      const auto* const start = static_cast<const std::byte*>(data);
      return host_.emplace_back(start, start + bytes).data();
    }
    gpu_.emplace_back(bytes).write(data, bytes);
    return gpu_.back().as<void>();
  }
  Device device_;
  std::deque<std::vector<std::byte>> host_;
  std::deque<cuda::Memory> gpu_;
};

enum class SlotKind { kHost, kWide, kNarrow };
enum class NormKind { kNone, kHead, kAll };

struct StepCase {
  std::string_view name;
  Rope rope;
  std::int64_t batch = 1, sequence = 300, heads = 32, key_heads = 8, features = 128, value_features = 128;
  bool is_fast = true;           // one launch of append_vectors
  bool has_heads_first = false;  // [pages, heads, page, features]
  bool in_place = true;
  SlotKind slots = SlotKind::kWide;
  NormKind norm = NormKind::kNone;
  bool consecutive = false, ids_on_gpu = true;
  std::int64_t first = 70'000;
  PrepareOptions prepare = {};
};

constexpr std::int64_t kPage = 16;

std::vector<std::int64_t> slots_of_case(std::int64_t tokens, std::int64_t pages) {
  std::vector<std::int64_t> slots(static_cast<std::size_t>(pages * kPage));
  std::iota(slots.begin(), slots.end(), 0);
  std::shuffle(slots.begin(), slots.end(), std::mt19937_64(5));
  slots.resize(static_cast<std::size_t>(tokens));
  for (std::size_t i = 3; i < slots.size(); i += 7) slots[i] = -1;
  return slots;
}

template <class T, class Cache> struct Results {
  std::vector<T> q;
  std::vector<Cache> k, v;
  std::vector<std::string> kernels;
};

template <class T, class Cache> Results<T, Cache> step_on(Device device, const StepCase& one) {
  Side side(device);
  const std::int64_t tokens = one.batch * one.sequence, pages = (tokens + kPage - 1) / kPage + 2;
  const auto tensor = [&](std::int64_t heads, std::int64_t features, std::uint64_t seed) {
    return side.put(random_values<T>(tokens * heads * features, seed), {one.batch, one.sequence, heads, features});
  };
  const TensorView q = tensor(one.heads, one.features, 1), k = tensor(one.key_heads, one.features, 2),
                   v = tensor(one.key_heads, one.value_features, 3), q_out = tensor(one.heads, one.features, 4);
  const auto pool = [&](std::int64_t features, std::uint64_t seed) {
    const Extents shape = one.has_heads_first ? Extents{pages, one.key_heads, kPage, features}
                                              : Extents{pages, kPage, one.key_heads, features};
    return side.put(random_values<Cache>(count_of(shape), seed), shape);
  };
  const TensorView k_pool = pool(one.features, 5), v_pool = pool(one.value_features, 6);
  const auto heads_second = [](const TensorView& x) { return swap_axes(x, 1, 2); };
  const auto cache = [&](const TensorView& x) { return one.has_heads_first ? x : heads_second(x); };
  const auto weight = [&](std::int64_t heads, std::uint64_t seed) {
    const Extents shape = one.norm == NormKind::kAll ? Extents{heads, one.features} : Extents{one.features};
    return one.norm == NormKind::kNone ? TensorView{} : side.put(random_values<T>(count_of(shape), seed), shape);
  };
  const Rotation form = prepare(one.rope, one.prepare);
  const int axes = position_axes_of(form);
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < axes * tokens; ++t) ids.push_back((t * 7919 + 12345) % 131072);
  Positions positions{.first = one.first};
  if (!one.consecutive && one.ids_on_gpu) positions = {.ids = side.list(ids), .axes = axes, .device = device};
  if (!one.consecutive && !one.ids_on_gpu) positions = {.ids = ids, .axes = axes};
  const auto slots = slots_of_case(tokens, pages);
  const std::vector<std::int32_t> narrow(slots.begin(), slots.end());
  const Slots places = one.slots == SlotKind::kHost   ? Slots(slots)
                       : one.slots == SlotKind::kWide ? Slots(side.list(slots), device)
                                                      : Slots(side.list(narrow), device);
  Results<T, Cache> made;
  {
#if POSENC_CUDA
    const kernels::cuda::ListKernels listed;
#endif
    append({cache(k_pool), cache(v_pool)}, places,
           {.q = heads_second(q),
            .k = heads_second(k),
            .v = heads_second(v),
            .q_out = heads_second(one.in_place ? q : q_out),
            .q_norm = weight(one.heads, 7),
            .k_norm = weight(one.key_heads, 8),
            .norm_epsilon = 1e-5,
            .norm_offset = 1},
           positions, form);
#if POSENC_CUDA
    made.kernels = listed.names();
#endif
  }
  if (device != Device::kHost) synchronize();
  const auto count = [](const TensorView& x) { return static_cast<std::size_t>(count_of(x.shape)); };
  made.q = side.get<T>(one.in_place ? q : q_out, count(q));
  made.k = side.get<Cache>(k_pool, count(k_pool));
  made.v = side.get<Cache>(v_pool, count(v_pool));
  return made;
}

template <class T, class Cache> void expect_step_of_the_host(const StepCase& one) {
  SCOPED_TRACE(one.name);
  const auto want = step_on<T, Cache>(Device::kHost, one);
  const auto got = step_on<T, Cache>(Device::kCuda, one);
  const bool has_exponential = has_growth(prepare(one.rope));  // in f64, its last place may differ
  if (one.norm == NormKind::kNone && !(has_exponential && sizeof(T) == 8)) {
    expect_same_bytes(got.q, want.q, "q");
    expect_same_bytes(got.k, want.k, "keys");
  } else {
    expect_one_rounding(got.q, want.q, "q");
    expect_one_rounding(got.k, want.k, "keys");
  }
  expect_same_bytes(got.v, want.v, "values");
  const bool is_fast = one.is_fast && std::is_same_v<T, Cache> && sizeof(T) < 8;
  ASSERT_EQ(got.kernels.size(), 1u);
  EXPECT_EQ(got.kernels[0].starts_with("append_vectors"), is_fast) << got.kernels[0];
}

// A line for each.
// clang-format off
std::vector<StepCase> step_cases() {
  const PairLayout adjacent = PairLayout::kInterleaved, moved = PairLayout::kInterleavedToHalves;
  const YarnScaling yarn{.factor = 4};
  return {
      {.name = "prefill", .rope = {.dims = 128}},
      {.name = "prefill, past few", .rope = {.dims = 128}, .sequence = 700},
      {.name = "interleaved, past few", .rope = {.dims = 128, .layout = adjacent}, .sequence = 700},
      {.name = "decode", .rope = {.dims = 128}, .batch = 256, .sequence = 1},
      {.name = "decode, interleaved", .rope = {.dims = 128, .layout = adjacent}, .batch = 200, .sequence = 1},
      {.name = "batch, out of place", .rope = {.dims = 128, .base = 5e5, .sign = -1}, .batch = 3, .sequence = 11, .in_place = false},
      {.name = "heads first", .rope = {.dims = 128}, .sequence = 61, .has_heads_first = true},
      {.name = "slots on the host", .rope = {.dims = 128}, .sequence = 61, .slots = SlotKind::kHost},
      {.name = "32-bit slots", .rope = {.dims = 128}, .sequence = 61, .slots = SlotKind::kNarrow},
      {.name = "ids on the host", .rope = {.dims = 128}, .sequence = 61, .ids_on_gpu = false},
      {.name = "consecutive", .rope = {.dims = 128}, .batch = 2, .sequence = 61, .consecutive = true},
      {.name = "partial", .rope = {.dims = 64}, .sequence = 61, .in_place = false},
      {.name = "partial, last", .rope = {.dims = 64, .layout = adjacent, .first_dim = -64}, .sequence = 61, .in_place = false},
      {.name = "partial, in the middle", .rope = {.dims = 32, .first_dim = 16}, .sequence = 61, .in_place = false},
      {.name = "narrow heads", .rope = {.dims = 64}, .sequence = 61, .heads = 7, .key_heads = 1, .features = 64},
      {.name = "wide heads", .rope = {.dims = 256}, .sequence = 61, .heads = 5, .key_heads = 5, .features = 256, .value_features = 64},
      {.name = "96 features", .rope = {.dims = 96}, .sequence = 61, .heads = 9, .key_heads = 3, .features = 96, .value_features = 96},
      {.name = "192 and 128", .rope = {.dims = 64, .first_dim = 128}, .sequence = 61, .heads = 8, .features = 192, .in_place = false},
      {.name = "yarn", .rope = {.dims = 128, .scaling = yarn}, .sequence = 61},
      {.name = "float32 angles", .rope = {.dims = 128, .scaling = yarn}, .sequence = 61, .prepare = {.numerics = Numerics::kHfF32}},
      {.name = "sections", .rope = {.dims = 128, .sections = {32, 16, 16}}, .sequence = 61},
      {.name = "sections of text", .rope = {.dims = 128, .sections = {32, 16, 16}}, .sequence = 61, .consecutive = true},
      {.name = "growth", .rope = {.dims = 128, .scaling = XposScaling{}}, .sequence = 61, .is_fast = false, .consecutive = true, .first = 3},
      {.name = "to halves", .rope = {.dims = 128, .layout = moved}, .sequence = 61, .is_fast = false},
      {.name = "odd heads", .rope = {.dims = 20}, .sequence = 61, .heads = 3, .key_heads = 3, .features = 30, .value_features = 18, .is_fast = false, .in_place = false},
      {.name = "norm", .rope = {.dims = 128}, .sequence = 61, .norm = NormKind::kHead},
      {.name = "norm, decode", .rope = {.dims = 128}, .batch = 64, .sequence = 1, .norm = NormKind::kHead},
      {.name = "norm, past few", .rope = {.dims = 128, .layout = adjacent}, .sequence = 700, .norm = NormKind::kHead},
      {.name = "norm, partial", .rope = {.dims = 32}, .sequence = 61, .heads = 7, .key_heads = 3, .features = 64, .in_place = false, .norm = NormKind::kHead},
      {.name = "norm, 96 features", .rope = {.dims = 64}, .sequence = 61, .heads = 7, .key_heads = 3, .features = 96, .is_fast = false, .norm = NormKind::kHead},
      {.name = "norm of all heads", .rope = {.dims = 128}, .sequence = 61, .is_fast = false, .norm = NormKind::kAll},
  };
}
// clang-format on

template <class T, class Cache> void expect_steps_of_the_host() {
  for (StepCase one : step_cases()) {
    const bool is_half_vectors = one.features * static_cast<std::int64_t>(sizeof(T)) % 32 != 0;
    if (is_half_vectors) one.is_fast = false;
    if (sizeof(T) == 4 && (one.features > 256 || one.value_features > 256)) one.is_fast = false;
    expect_step_of_the_host<T, Cache>(one);
  }
}
TEST(CudaSlots, AppendsBf16LikeTheHost) {
  SKIP_WITHOUT_CUDA();
  expect_steps_of_the_host<BFloat16, BFloat16>();
}
TEST(CudaSlots, AppendsF16LikeTheHost) {
  SKIP_WITHOUT_CUDA();
  expect_steps_of_the_host<Half, Half>();
}
TEST(CudaSlots, AppendsF32LikeTheHost) {
  SKIP_WITHOUT_CUDA();
  expect_steps_of_the_host<float, float>();
}
TEST(CudaSlots, AppendsF64LikeTheHost) {
  SKIP_WITHOUT_CUDA();
  expect_steps_of_the_host<double, double>();
}
TEST(CudaSlots, AppendsToACacheOfAnotherType) {
  SKIP_WITHOUT_CUDA();
  expect_steps_of_the_host<float, BFloat16>();
  expect_steps_of_the_host<BFloat16, Half>();
}

// One cache of keys, [pages, page, heads, features], and what a call does to it on either side.
template <class T, class Call> std::vector<T> pool_after(Device device, const Call& call) {
  Side side(device);
  constexpr std::int64_t kPages = 9, kHeads = 6, kFeatures = 64;
  const TensorView pool =
      side.put(random_values<T>(kPages * kPage * kHeads * kFeatures, 1), {kPages, kPage, kHeads, kFeatures});
  call(side, swap_axes(pool, 1, 2));
  if (device != Device::kHost) synchronize();
  return side.template get<T>(pool, static_cast<std::size_t>(count_of(pool.shape)));
}
template <class T, class Call> void expect_pool_of_the_host(std::string_view what, const Call& call) {
  const auto want = pool_after<T>(Device::kHost, call), got = pool_after<T>(Device::kCuda, call);
  expect_same_bytes(got, want, what);
  EXPECT_NE(got, random_values<T>(std::ssize(got), 1)) << what << ": nothing was written";
}

template <class T> void expect_verbs_of_the_host() {
  const auto slots = slots_of_case(100, 9);
  std::vector<std::int64_t> from = slots, to(slots.rbegin(), slots.rend());
  for (const bool is_there : {false, true}) {
    const auto given = [&](Side& side, const std::vector<std::int64_t>& list) {
      return is_there ? Slots(side.list(list), side.device()) : Slots(list);
    };
    for (const PairLayout layout :
         {PairLayout::kHalves, PairLayout::kInterleaved, PairLayout::kInterleavedToHalves}) {
      const Rotation form = prepare(Rope{
          .dims = 32, .layout = layout, .first_dim = 8, .scaling = YarnScaling{.factor = 16, .original_length = 64}});
      expect_pool_of_the_host<T>("rotate_into", [&](Side& side, const TensorView& cache) {
        const TensorView k = side.put(random_values<BFloat16>(100 * 6 * 64, 2), {100, 6, 64});
        rotate_into(cache, given(side, slots), swap_axes(k, 0, 1), {.first = 5}, form);
      });
      expect_pool_of_the_host<T>(
          "shift", [&](Side& side, const TensorView& cache) { shift(cache, given(side, slots), -67, form); });
    }
    expect_pool_of_the_host<T>("copy_into", [&](Side& side, const TensorView& cache) {
      const TensorView x = side.put(random_values<T>(100 * 6 * 64, 2), {100, 6, 64});
      copy_into(cache, given(side, slots), swap_axes(x, 0, 1));
    });
    expect_pool_of_the_host<T>("copy_slots", [&](Side& side, const TensorView& cache) {
      copy_slots(cache, given(side, to), given(side, from));
    });
    expect_pool_of_the_host<T>("append without a rotation", [&](Side& side, const TensorView& cache) {
      const TensorView x = side.put(random_values<T>(100 * 6 * 64, 2), {100, 6, 64});
      append({slice(cache, 1, 0, 3), slice(cache, 1, 3, 3)}, given(side, slots),
             {.k = swap_axes(slice(x, 1, 0, 3), 0, 1), .v = swap_axes(slice(x, 1, 3, 3), 0, 1)});
    });
  }
}
TEST(CudaSlots, VerbsWriteWhatTheHostWrites) {
  SKIP_WITHOUT_CUDA();
  expect_verbs_of_the_host<BFloat16>();
  expect_verbs_of_the_host<Half>();
  expect_verbs_of_the_host<float>();
  expect_verbs_of_the_host<double>();
}

// Captured once: every launch rotates what the previous one wrote.
TEST(CudaSlots, AppendsInAGraph) {
  SKIP_WITHOUT_CUDA();
  const std::int64_t tokens = 64, heads = 8, features = 128, pages = 8;
  auto q = random_values<BFloat16>(tokens * heads * features, 1);
  const auto k = random_values<BFloat16>(tokens * heads * features, 2);
  std::vector<BFloat16> k_pool(static_cast<std::size_t>(pages * kPage * heads * features)), v_pool = k_pool;
  const auto slots = slots_of_case(tokens, pages);
  std::vector<std::int64_t> ids;
  for (std::int64_t t = 0; t < tokens; ++t) ids.push_back(t * 31);
  const Rotation form = prepare(Rope{.dims = features});
  const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k), gpu_k_pool = cuda::memory_of(k_pool),
                     gpu_v_pool = cuda::memory_of(v_pool), gpu_slots = cuda::memory_of(slots),
                     gpu_ids = cuda::memory_of(ids);
  const Extents shape = {tokens, heads, features}, pool_shape = {pages, kPage, heads, features};
  const auto step = [&](Device device, void* a, void* b, void* c, void* d, const Slots& places,
                        const Positions& positions, const posenc::Run& run) {
    const auto tensor = [&](void* data) {
      return swap_axes(on(device, TensorView(data, DataType::kBF16, shape)), 0, 1);
    };
    const auto pool = [&](void* data) {
      return swap_axes(on(device, TensorView(data, DataType::kBF16, pool_shape)), 1, 2);
    };
    append({pool(c), pool(d)}, places, {.q = tensor(a), .k = tensor(b), .v = tensor(b), .q_out = tensor(a)},
           positions, form, run);
  };
  const auto on_gpu = [&](const posenc::Run& run) {
    step(Device::kCuda, gpu_q.as<void>(), gpu_k.as<void>(), gpu_k_pool.as<void>(), gpu_v_pool.as<void>(),
         {std::span(gpu_slots.as<const std::int64_t>(), slots.size()), Device::kCuda},
         {.ids = {gpu_ids.as<const std::int64_t>(), ids.size()}, .device = Device::kCuda}, run);
  };
  const auto once = [&] {
    step(Device::kHost, q.data(), const_cast<BFloat16*>(k.data()), k_pool.data(), v_pool.data(), slots, {.ids = ids},
         {});
  };
  on_gpu({});
  synchronize();
  cuda::time_in_graph(on_gpu, 20);  // launched twice
  for (int n = 0; n < 41; ++n) once();
  expect_same_bytes(gpu_q.values<BFloat16>(q.size()), q, "q");
  expect_same_bytes(gpu_k_pool.values<BFloat16>(k_pool.size()), k_pool, "keys");
  expect_same_bytes(gpu_v_pool.values<BFloat16>(v_pool.size()), v_pool, "values");
}

}  // namespace
}  // namespace posenc::cuda_slots_test
