// Attention on a GPU beyond the kernels for compute capability 9.0: masks, windows, lengths, packed sequences, more
// keys than queries and fewer, any number of features up to 256, features that are not contiguous; and its gradients.
// Against the reference in f64.

#include <algorithm>
#include <limits>
#include <optional>

#include "cuda_cases.h"
#include "posenc/cuda.h"

namespace posenc::cuda_sm80_test {
namespace {

using namespace cuda_cases;

constexpr double kOfResult = 4e-3, kOfGradient = 8e-3, kOfParameters = 2e-2;
constexpr double kOfWideResult = 4e-6, kOfWideSums = 2e-5;  // of float32

// What lies where nothing may be read.
template <class T> T not_a_number() { return numerics::narrow<T>(std::numeric_limits<double>::quiet_NaN()); }

std::string why_not_sm80() {
  if (const std::string reason = why_absent("cuda"); !reason.empty()) return "cuda cannot run here: " + reason;
  return cuda::facts().capability >= 80 ? "" : "the kernels need compute capability 8.0";
}

struct Sm80Case {
  std::string what;
  std::int64_t batch = 2, heads = 4, key_heads = 2, queries = 150, keys = 150, features = 64, value_features = 64;
  AttentionOptions options = {};
  bool is_apart = false;  // every other element of memory is a feature
};

// A tensor of the case on the GPU, and the view of it in doubles.
template <class T> struct Pair {
  std::vector<double> wide;
  cuda::Memory narrow;
  Extents shape;
  bool is_apart;

  Pair(const Extents& extents, bool apart, std::uint64_t seed)
      : narrow(static_cast<std::size_t>(count_of(extents)) * 2 * sizeof(T)), shape(extents), is_apart(apart) {
    const auto values = normal_values<T>(count_of(shape), 1, seed);
    wide = as_doubles(values);
    std::vector<T> spread(values.size() * 2, not_a_number<T>());
    for (std::size_t i = 0; i < values.size(); ++i) spread[is_apart ? 2 * i : i] = values[i];
    narrow.write(spread.data(), spread.size() * sizeof(T));
  }
  TensorView host() { return view(wide.data(), shape); }
  TensorView gpu() const {
    TensorView x = on(Device::kCuda, TensorView(narrow.as<void>(), data_type_of<T>(), shape));
    for (int axis = 0; is_apart && axis < shape.rank; ++axis) x.strides[axis] *= 2;
    return x;
  }
  void poison() const { cuda::fill(narrow.as<void>(), 0xFF, narrow.size()); }
  std::vector<double> values() const {
    const auto all = as_doubles(narrow.values<T>(wide.size() * 2));
    std::vector<double> some;
    for (std::size_t i = 0; i < wide.size(); ++i) some.push_back(all[is_apart ? 2 * i : i]);
    return some;
  }
};

Extents parameters_of(const Sm80Case& one) {
  const auto* const bias = std::get_if<Bias>(&one.options.position);
  if (bias == nullptr) return {};
  if (std::holds_alternative<Slopes>(bias->source)) return {one.heads};
  return table_of(std::get<DistanceTable>(bias->source), one.heads).shape;
}

template <class T> void expect_all(const Sm80Case& one) {
  SCOPED_TRACE(one.what);
  const Extents q_shape = {one.batch, one.heads, one.queries, one.features},
                k_shape = {one.batch, one.key_heads, one.keys, one.features},
                v_shape = {one.batch, one.key_heads, one.keys, one.value_features},
                out_shape = {one.batch, one.heads, one.queries, one.value_features},
                sums_shape = {one.batch, one.heads, one.queries};
  Pair<T> q(q_shape, one.is_apart, 1), k(k_shape, one.is_apart, 2), v(v_shape, one.is_apart, 3),
      g(out_shape, one.is_apart, 4), out(out_shape, one.is_apart, 5), dq(q_shape, one.is_apart, 6),
      dk(k_shape, one.is_apart, 7), dv(v_shape, one.is_apart, 8);
  std::vector<double> sums(static_cast<std::size_t>(count_of(sums_shape)));
  AttentionOptions options = one.options;
  options.logsumexp = view(sums.data(), sums_shape);
  attention(out.host(), q.host(), k.host(), v.host(), options);
  const cuda::Memory gpu_sums(sums.size() * sizeof(float));
  for (const Pair<T>* x : {&out, &dq, &dk, &dv}) x->poison();
  cuda::fill(gpu_sums.as<void>(), 0xFF, gpu_sums.size());
  AttentionOptions gpu_options = one.options;
  gpu_options.logsumexp = on(Device::kCuda, TensorView(gpu_sums.as<void>(), DataType::kF32, sums_shape));
  attention(out.gpu(), q.gpu(), k.gpu(), v.gpu(), gpu_options);
  synchronize();
  constexpr bool kIsWide = sizeof(T) == sizeof(float);
  // With a workspace of the size that is asked for, the same bytes; with less, an error.
  const auto expect_in_workspace = [](std::size_t bytes, const auto& call, const auto& results) {
    if (bytes == 0) return;
    const auto before = results();
    const cuda::Memory room(bytes);
    call(std::span<std::byte>(room.as<std::byte>(), bytes));
    synchronize();
    EXPECT_EQ(results(), before);
    EXPECT_THROW(call(std::span<std::byte>(room.as<std::byte>(), std::max<std::size_t>(bytes - 256, 1))), Error);
    synchronize();
  };
  expect_in_workspace(
      workspace_bytes({q.gpu(), k.gpu(), v.gpu()}, gpu_options),
      [&](std::span<std::byte> room) {
        attention(out.gpu(), q.gpu(), k.gpu(), v.gpu(), gpu_options, {.workspace = room});
      },
      [&] { return out.values(); });
  EXPECT_LT(relative_error(out.values(), out.wide), kIsWide ? kOfWideResult : kOfResult);
  const auto got_sums = gpu_sums.values<float>(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == -HUGE_VAL) {
      ASSERT_EQ(static_cast<double>(got_sums[i]), sums[i]) << i;
    } else {
      ASSERT_NEAR(static_cast<double>(got_sums[i]), sums[i], kIsWide ? kOfWideSums : 0.05) << i;
    }
  }
  if constexpr (kIsWide) return;

  const Extents p_shape = parameters_of(one);
  std::vector<double> d_parameters(p_shape.rank == 0 ? 0 : static_cast<std::size_t>(count_of(p_shape)), 0.25);
  const cuda::Memory gpu_parameters = cuda::memory_of(d_parameters);
  const bool has_parameters = p_shape.rank > 0;
  const AttentionInputs host{q.host(), k.host(), v.host()},
      gpu{q.gpu(), k.gpu(), v.gpu(), out.gpu(), gpu_options.logsumexp};
  attention_backward(
      {dq.host(), dk.host(), dv.host(), has_parameters ? view(d_parameters.data(), p_shape) : TensorView{}}, g.host(),
      host, one.options);
  AttentionOptions repeatable = one.options;
  repeatable.is_repeatable = true;
  const auto backward = [&] {
    attention_backward(
        {dq.gpu(), dk.gpu(), dv.gpu(),
         has_parameters ? on(Device::kCuda, TensorView(gpu_parameters.as<void>(), DataType::kF64, p_shape))
                        : TensorView{}},
        g.gpu(), gpu, repeatable);
    synchronize();
  };
  backward();
  if (one.keys > 1) {  // the weight of a single key is 1 whatever q and k are
    EXPECT_LT(relative_error(dq.values(), dq.wide), kOfGradient) << "dq";
    EXPECT_LT(relative_error(dk.values(), dk.wide), kOfGradient) << "dk";
  }
  EXPECT_LT(relative_error(dv.values(), dv.wide), kOfGradient) << "dv";
  if (has_parameters && one.keys > 1) {
    auto got = gpu_parameters.values<double>(d_parameters.size());
    for (double& value : got) value -= 0.25;
    for (double& value : d_parameters) value -= 0.25;
    EXPECT_LT(relative_error(got, d_parameters), kOfParameters);
  }
  // The same bytes again.
  const auto first = std::vector{dq.values(), dk.values(), dv.values()};
  backward();
  EXPECT_EQ(first, (std::vector{dq.values(), dk.values(), dv.values()}));
  const AttentionGradients wanted{dq.gpu(), dk.gpu(), dv.gpu()};
  expect_in_workspace(
      workspace_bytes(wanted, g.gpu(), gpu, repeatable),
      [&](std::span<std::byte> room) { attention_backward(wanted, g.gpu(), gpu, repeatable, {.workspace = room}); },
      [&] {
        return std::vector{dq.values(), dk.values(), dv.values()};
      });
}

Form both_sides(std::int64_t heads) {
  DistanceTable table;
  table.axes.push_back({-40, {}, true});
  for (std::int64_t at = 0; at <= 90; ++at) table.axes[0].entries.push_back(at / 3);
  table.values = as_doubles(normal_values<float>(31 * heads, 1, 9));
  return Bias{heads, table};
}
Form slopes_for(std::int64_t heads) {
  Slopes slopes;
  for (std::int64_t h = 0; h < heads; ++h) slopes.slopes.push_back(std::exp2(-8.0 * double(h + 1) / double(heads)));
  return Bias{heads, slopes};
}

TEST(CudaAttentionSm80, IsTheReferenceWithinItsError) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  const std::vector<std::int64_t> lengths = {150, 70}, key_lengths = {100, 150}, packed = {20, 1, 0, 64, 65};
  std::vector<std::int64_t> mask(300, 1), ids;
  for (std::size_t i = 0; i < mask.size(); i += 3) mask[i] = 0;
  for (std::int64_t i = 0; i < 150; ++i) ids.push_back(i / 2 * 3);
  const Form tables = both_sides(4), slopes = slopes_for(4), rope = prepare(Rope{.dims = 64});
  for (const Sm80Case& one : {
           Sm80Case{.what = "all keys"},
           Sm80Case{.what = "causal, as compute capability 9.0 has it",
           .options = {.position = slopes, .causal = true}},
           Sm80Case{.what = "all keys, slopes", .options = {.position = slopes}},
           Sm80Case{.what = "all keys, a table of both sides", .options = {.position = tables}},
           Sm80Case{.what = "a window", .options = {.position = tables, .window = 9}},
           Sm80Case{.what = "a causal window", .options = {.position = slopes, .causal = true, .window = 70}},
           Sm80Case{.what = "one query", .queries = 1, .keys = 333, .options = {.position = slopes, .causal = true}},
           Sm80Case{.what = "chunks", .options = {.position = slopes, .causal = true, .chunk = 40}},
           Sm80Case{.what = "fewer queries", .queries = 37, .options = {.position = rope, .causal = true}},
           Sm80Case{.what = "more queries", .queries = 190, .options = {.position = tables, .causal = true}},
           Sm80Case{.what = "lengths",
           .options = {.position = tables, .causal = true, .query_lengths = lengths, .key_lengths = key_lengths}},
           Sm80Case{.what = "packed", .options = {.position = slopes, .causal = true, .packed = packed}},
           Sm80Case{.what = "packed, rotated", .options = {.position = rope, .causal = true, .packed = packed}},
           Sm80Case{.what = "a mask", .options = {.position = tables, .causal = true, .key_mask = mask}},
           Sm80Case{.what = "positions given",
           .options = {.position = tables,
                      .causal = true,
                      .query_positions = Positions{.ids = ids},
                      .key_positions = Positions{.ids = ids}}},
           Sm80Case{.what = "keys rotated before", .options = {.position = rope, .keys_are_rotated = true}},
           Sm80Case{.what = "40 features", .features = 40, .value_features = 24, .options = {.causal = true}},
           Sm80Case{.what = "96 features", .features = 96, .value_features = 96, .options = {.position = tables}},
           Sm80Case{.what = "128 features",
           .features = 128,
           .value_features = 128,
           .options = {.position = slopes, .window = 33}},
           Sm80Case{.what = "256 features",
           .features = 256,
           .value_features = 256,
           .options = {.position = tables, .causal = true}},
           Sm80Case{.what = "5 and 3 features, apart",
           .features = 5,
           .value_features = 3,
           .options = {.causal = true},
           .is_apart = true},
           Sm80Case{.what = "64 features, apart", .options = {.position = slopes, .causal = true}, .is_apart = true},
           Sm80Case{.what = "a scale below 0", .options = {.causal = true, .scale = -0.2}},
           Sm80Case{.what = "decoding",
           .heads = 8,
           .queries = 2,
           .keys = 700,
           .features = 128,
           .value_features = 128,
           .options = {.position = both_sides(8), .causal = true}},
           Sm80Case{.what = "decoding, 16 rows",
           .heads = 16,
           .key_heads = 1,
           .queries = 1,
           .keys = 1500,
           .options = {.position = slopes_for(16), .causal = true}},
           Sm80Case{.what = "decoding, lengths",
           .queries = 3,
           .options = {.position = slopes, .causal = true, .key_lengths = key_lengths}},
           Sm80Case{.what = "decoding, a window",
           .queries = 1,
           .keys = 2000,
           .options = {.position = tables, .causal = true, .window = 300}},
           Sm80Case{.what = "decoding, a mask", .queries = 1, .options = {.causal = true, .key_mask = mask}},
           Sm80Case{.what = "one token", .queries = 1, .keys = 1, .options = {.position = slopes}},
       }) {
    expect_all<BFloat16>(one);
    if (one.what != "all keys, slopes" && one.features >= 64) expect_all<Half>(one);
    expect_all<float>(one);
  }
}

// k and v in pages that lie in any order, with what is not a number everywhere else.
struct PagedCase {
  std::string what;
  std::int64_t queries, heads, features, page;
  AttentionOptions options;
};
template <class T> void expect_pages(const PagedCase& one) {
  SCOPED_TRACE(one.what);
  const std::int64_t batch = 2, key_heads = 2, keys = 480, per_sequence = keys / one.page,
                     pages = batch * per_sequence + 3;
  const Extents q_shape = {batch, one.heads, one.queries, one.features},
                k_shape = {batch, key_heads, keys, one.features},
                pool_shape = {pages, one.page, key_heads, one.features};
  const auto q = normal_values<T>(count_of(q_shape), 1, 1), k = normal_values<T>(count_of(k_shape), 1, 2),
             v = normal_values<T>(count_of(k_shape), 1, 3);
  const std::vector<std::int64_t> lengths = {keys, 333};
  std::vector<std::int32_t> table;
  for (std::int64_t i = 0; i < pages; ++i) table.push_back(static_cast<std::int32_t>(i));
  std::shuffle(table.begin(), table.end(), std::mt19937_64(5));
  table.resize(static_cast<std::size_t>(batch * per_sequence));
  std::vector<T> k_pool(static_cast<std::size_t>(count_of(pool_shape)), not_a_number<T>()), v_pool = k_pool;
  for (std::int64_t b = 0; b < batch; ++b) {
    for (std::int64_t t = 0; t < lengths[static_cast<std::size_t>(b)]; ++t) {
      const std::int64_t slot =
          table[static_cast<std::size_t>(b * per_sequence + t / one.page)] * one.page + t % one.page;
      for (std::int64_t h = 0; h < key_heads; ++h) {
        for (std::int64_t f = 0; f < one.features; ++f) {
          const auto to = static_cast<std::size_t>((slot * key_heads + h) * one.features + f);
          const auto from = static_cast<std::size_t>(((b * key_heads + h) * keys + t) * one.features + f);
          k_pool[to] = k[from], v_pool[to] = v[from];
        }
      }
    }
  }
  for (std::int64_t i = (333 + one.page - 1) / one.page; i < per_sequence; ++i) {
    table[static_cast<std::size_t>(per_sequence + i)] = -1;  // past the length: not read
  }
  AttentionOptions options = one.options;
  options.causal = true;
  options.key_lengths = lengths;
  auto wide_q = as_doubles(q), wide_k = as_doubles(k), wide_v = as_doubles(v);
  std::vector<double> want(wide_q.size());
  attention(view(want.data(), q_shape), view(wide_q.data(), q_shape), view(wide_k.data(), k_shape),
            view(wide_v.data(), k_shape), options);
  const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k_pool), gpu_v = cuda::memory_of(v_pool),
                     out(q.size() * sizeof(T));
  cuda::fill(out.as<void>(), 0xFF, out.size());
  const auto at = [&](const cuda::Memory& x, const Extents& shape) {
    return on(Device::kCuda, TensorView(x.as<void>(), data_type_of<T>(), shape));
  };
  options.block_table = table;
  attention(at(out, q_shape), at(gpu_q, q_shape), swap_axes(at(gpu_k, pool_shape), 1, 2),
            swap_axes(at(gpu_v, pool_shape), 1, 2), options);
  synchronize();
  const auto found = as_doubles(out.values<T>(q.size()));
  EXPECT_LT(relative_error(found, want), sizeof(T) == sizeof(float) ? kOfWideResult : kOfResult);

  // The same bytes where the GPU has the lengths and the table, as vLLM gives them. Captured: nothing waits, and what lies
  // in that memory when the graph runs is what counts. At first all sequences are empty.
  const cuda::Memory gpu_table = cuda::memory_of(table),
                     gpu_lengths = cuda::memory_of(std::vector<std::int32_t>(2, 0)),
                     true_lengths = cuda::memory_of(std::vector<std::int32_t>{keys, 333}),
                     empty(q.size() * sizeof(T));
  AttentionOptions there = one.options;
  there.causal = true;
  there.device_key_lengths = {gpu_lengths.as<const std::int32_t>(), 2};
  there.device_block_table = {gpu_table.as<const std::int32_t>(), table.size()};
  std::vector<std::int64_t> ids;
  for (const std::int64_t length : lengths) {
    for (std::int64_t i = 0; i < one.queries; ++i) ids.push_back(length - one.queries + i);
  }
  const cuda::Memory gpu_ids = cuda::memory_of(ids);
  if (std::holds_alternative<Rotation>(there.position)) {
    there.query_positions = Positions{.ids = {gpu_ids.as<const std::int64_t>(), ids.size()}, .device = Device::kCuda};
  }
  const auto attend = [&](const cuda::Memory& to, const posenc::Run& run) {
    attention(at(to, q_shape), at(gpu_q, q_shape), swap_axes(at(gpu_k, pool_shape), 1, 2),
              swap_axes(at(gpu_v, pool_shape), 1, 2), there, run);
  };
  attend(empty, {});  // numbers of the form are copied at the first call
  synchronize();
  EXPECT_EQ(as_doubles(empty.values<T>(q.size())), std::vector<double>(q.size(), 0.0));
  cuda::fill(out.as<void>(), 0xFF, out.size());
  cuda::time_in_graph(
      [&](const posenc::Run& run) {
        cuda::copy(gpu_lengths.as<void>(), true_lengths.as<void>(), 2 * sizeof(std::int32_t), run);
        attend(out, run);
      },
      1);
  synchronize();
  EXPECT_EQ(as_doubles(out.values<T>(q.size())), found);
}

TEST(CudaAttentionSm80, ReadsAPagedCache) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  const Form rope = prepare(Rope{.dims = 64});
  for (const PagedCase& one : {
           PagedCase{"decoding", 1, 8, 128, 16, {}},
           PagedCase{"decoding, slopes", 1, 8, 128, 48, {.position = slopes_for(8)}},
           PagedCase{"decoding, a table", 2, 4, 64, 16, {.position = both_sides(4)}},
           PagedCase{"decoding, rotated", 1, 4, 64, 32, {.position = rope, .keys_are_rotated = true}},
           PagedCase{"decoding, pages of 10", 1, 4, 64, 10, {.position = slopes_for(4)}},
           PagedCase{"decoding, 256 features", 1, 4, 256, 16, {}},
           PagedCase{"many queries", 70, 4, 64, 24, {.position = both_sides(4)}},
       }) {
    expect_pages<BFloat16>(one);
    expect_pages<Half>(one);
    expect_pages<float>(one);
  }
}

// Nobody has looked at what lies on the GPU: what is out of range is not followed, and the next wait says so.
TEST(CudaAttentionSm80, SaysWhichLengthOrPageIsOutOfRange) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  const std::int64_t pages = 20, page = 16;
  const Extents q_shape = {1, 2, 1, 64}, pool_shape = {pages, 2, page, 64};
  const auto q = cuda::memory_of(normal_values<BFloat16>(count_of(q_shape), 1, 1)),
             pool = cuda::memory_of(normal_values<BFloat16>(count_of(pool_shape), 1, 2)),
             wide_q = cuda::memory_of(normal_values<float>(count_of(q_shape), 1, 1)),
             wide_pool = cuda::memory_of(normal_values<float>(count_of(pool_shape), 1, 2));
  const cuda::Memory out(128 * 4);
  const auto refusal = [&](std::int32_t length, std::int32_t bad, bool is_wide) -> std::string {
    std::vector<std::int32_t> table;
    for (std::int32_t i = 0; i < 16; ++i) table.push_back(i == 3 ? bad : i);
    const cuda::Memory gpu_table = cuda::memory_of(table),
                       gpu_length = cuda::memory_of(std::vector<std::int32_t>{length});
    const auto at = [&](const cuda::Memory& x, const Extents& shape) {
      return on(Device::kCuda, TensorView(x.as<void>(), is_wide ? DataType::kF32 : DataType::kBF16, shape));
    };
    const cuda::Memory &from_q = is_wide ? wide_q : q, &from = is_wide ? wide_pool : pool;
    attention(at(out, q_shape), at(from_q, q_shape), at(from, pool_shape), at(from, pool_shape),
              {.device_key_lengths = {gpu_length.as<const std::int32_t>(), 1},
               .device_block_table = {gpu_table.as<const std::int32_t>(), table.size()}});
    try {
      synchronize();
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  for (const bool is_wide : {false, true}) {
    EXPECT_EQ(refusal(256, 19, is_wide), "");
    EXPECT_EQ(refusal(48, 99, is_wide), "") << "past the length, an entry is not read";
    EXPECT_EQ(refusal(257, 3, is_wide),
              "cuda: a sequence has 257 keys but the cache has room for 256; it was treated as empty");
    EXPECT_EQ(refusal(-1, 3, is_wide),
              "cuda: a sequence has -1 keys but the cache has room for 256; it was treated as empty");
    EXPECT_EQ(refusal(256, 20, is_wide), "cuda: the block table names page 20 but there are 20; page 0 was read");
    EXPECT_EQ(refusal(256, -7, is_wide), "cuda: the block table names page -7 but there are 20; page 0 was read");
  }
}

TEST(CudaAttentionSm80, RefusesWhatTheHostCannotKnow) {
  const std::vector<std::int32_t> lengths = {4};
  const std::vector<std::int64_t> own = {4};
  std::vector<float> x(64);
  const auto refusal = [&](Device device, const AttentionOptions& options) -> std::string {
    const TensorView tensor = on(device, view(x.data(), {1, 1, 4, 16}));
    std::vector<float> to(64);
    try {
      attention(on(device, view(to.data(), {1, 1, 4, 16})), tensor, tensor, tensor, options);
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_EQ(refusal(Device::kHost, {.device_key_lengths = lengths}),
            "attention: device_key_lengths and device_block_table are for tensors on a GPU");
  EXPECT_EQ(refusal(Device::kCuda, {.device_block_table = lengths}),
            "attention: device_key_lengths has 0 numbers but must have 1");
  EXPECT_EQ(
      refusal(Device::kCuda, {.key_lengths = own, .device_key_lengths = lengths}),
      "attention: device_key_lengths cannot be combined with key_lengths, query_lengths, packed sequences, block_table or chunk");
  EXPECT_EQ(refusal(Device::kCuda, {.position = prepare(Rope{.dims = 16}), .device_key_lengths = lengths}),
            "attention: a rotation with device_key_lengths needs query_positions, and keys that are rotated already");
}

// Tensors on the host: the same bytes as of tensors on the GPU.
TEST(CudaAttentionSm80, TakesTensorsOfTheHost) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  struct HostCase {
    std::string what;
    std::int64_t batch, heads, key_heads, queries, keys, features;
    AttentionOptions options;
  };
  const std::vector<std::int64_t> lengths = {300, 70, 5};
  const Form rope = prepare(Rope{.dims = 64});
  for (const HostCase& one :
       {HostCase{"a table", 3, 4, 2, 300, 300, 64, {.position = both_sides(4), .causal = true}},
        HostCase{"rotated", 2, 4, 2, 257, 257, 64, {.position = rope, .causal = true}},
        HostCase{
            "lengths", 3, 4, 2, 20, 300, 64, {.position = slopes_for(4), .causal = true, .key_lengths = lengths}},
        HostCase{"long", 1, 3, 3, 140000, 140000, 64, {.position = slopes_for(3), .causal = true, .window = 16}}}) {
    SCOPED_TRACE(one.what);
    const Extents q_shape = {one.batch, one.queries, one.heads, one.features},
                  k_shape = {one.batch, one.keys, one.key_heads, one.features},
                  sums_shape = {one.batch, one.heads, one.queries};
    // Many of them are the same again, so that they take no time to make.
    const auto values_of = [](const Extents& shape, std::uint64_t seed) {
      auto values = normal_values<BFloat16>(std::min<std::int64_t>(count_of(shape), 1'000'003), 1, seed);
      const std::size_t own = values.size();
      values.resize(static_cast<std::size_t>(count_of(shape)));
      for (std::size_t i = own; i < values.size(); ++i) values[i] = values[i - own];
      return values;
    };
    const auto q = values_of(q_shape, 1), k = values_of(k_shape, 2), v = values_of(k_shape, 3);
    std::vector<BFloat16> out(q.size());
    std::vector<float> sums(static_cast<std::size_t>(count_of(sums_shape)));
    AttentionOptions options = one.options;
    options.logsumexp = view(sums.data(), sums_shape);
    const auto ordered = [](const auto& x) { return swap_axes(x, 1, 2); };
    force_backend("cuda");
    attention(ordered(view(out.data(), q_shape)), ordered(view(q.data(), q_shape)), ordered(view(k.data(), k_shape)),
              ordered(view(v.data(), k_shape)), options);
    force_backend("");
    const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k), gpu_v = cuda::memory_of(v),
                       gpu_out(q.size() * 2), gpu_sums(sums.size() * 4);
    const auto there = [](const cuda::Memory& x, const Extents& shape) {
      return swap_axes(on(Device::kCuda, TensorView(x.as<void>(), DataType::kBF16, shape)), 1, 2);
    };
    options.logsumexp = on(Device::kCuda, TensorView(gpu_sums.as<void>(), DataType::kF32, sums_shape));
    attention(there(gpu_out, q_shape), there(gpu_q, q_shape), there(gpu_k, k_shape), there(gpu_v, k_shape), options);
    synchronize();
    EXPECT_EQ(as_doubles(out), as_doubles(gpu_out.values<BFloat16>(out.size())));
    EXPECT_EQ(sums, gpu_sums.values<float>(sums.size()));
  }
}

// Refused when the third copy does not fit; the first two are freed.
TEST(CudaAttentionSm80, RefusesTensorsOfTheHostLargerThanFreeMemory) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  constexpr std::size_t kLeft = std::size_t{256} << 20;
  const Extents shape = {1, 24, 32768, 64};  // 96 MiB
  const std::vector<BFloat16> q(static_cast<std::size_t>(count_of(shape))), k = q, v = q;
  std::vector<BFloat16> out(q.size(), BFloat16{0x3F80});
  const auto refusal = [&]() -> std::string {
    try {
      attention(view(out.data(), shape), view(q.data(), shape), view(k.data(), shape), view(v.data(), shape),
                {.window = 1});
      return "";
    } catch (const Error& error) {
      return error.what();
    }
  };
  force_backend("cuda");
  {
    const cuda::Memory ballast(cuda::free_bytes() - kLeft);
    const std::string told = refusal();
    // How many of the four fit before one does not is the driver's business.
    EXPECT_TRUE(told.starts_with("cuda: copies of the tensors on the host need at least ")) << told;
    EXPECT_NE(told.find(" of the GPU's memory are free"), std::string::npos) << told;
    EXPECT_EQ(out, std::vector<BFloat16>(out.size(), BFloat16{0x3F80}));
  }
  EXPECT_EQ(refusal(), "");
  force_backend("");
}

// What no query sees may hold anything.
TEST(CudaAttentionSm80, NeverReadsWhatIsPastTheLengths) {
  if (const std::string reason = why_not_sm80(); !reason.empty()) GTEST_SKIP() << reason;
  const Extents shape = {1, 1, 96, 64};
  auto values = normal_values<BFloat16>(count_of(shape), 1, 1);
  for (std::size_t i = 50 * 64; i < values.size(); ++i) values[i].bits = 0x7FC0;
  const cuda::Memory kv = cuda::memory_of(values), out(values.size() * 2);
  const auto q = cuda::memory_of(normal_values<BFloat16>(count_of(shape), 1, 2));
  const auto at = [&](const cuda::Memory& x) {
    return on(Device::kCuda, TensorView(x.as<void>(), DataType::kBF16, shape));
  };
  const std::vector<std::int64_t> lengths = {50};
  attention(at(out), at(q), at(kv), at(kv), {.key_lengths = lengths});
  synchronize();
  for (const double value : as_doubles(out.values<BFloat16>(values.size()))) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace posenc::cuda_sm80_test
