// What compute capability 9.0 has kernels of its own for, beyond causal attention with as many queries as keys: all
// keys, windows, more keys than queries and fewer, positions that do not start at 0. Against the reference in f64,
// with gradients, for every size of heads; lengths end inside tiles. Each case says which kernel must take it, so that one that falls back to
// the slower kernels is seen.

#include <algorithm>
#include <limits>
#include <optional>

#include "cuda_cases.h"
#include "posenc/cuda.h"

#if POSENC_CUDA
#include "kernels/cuda/module.h"

namespace posenc::cuda_band_test {
namespace {

using namespace cuda_cases;

constexpr double kOfNorm = 3e-3, kOfRow = 1.2e-2, kOfLogsumexp = 2e-3, kOfGradient = 6e-3, kOfTable = 2e-2;

struct BandCase {
  std::int64_t queries, keys;
  bool causal = false;
  std::int64_t window = 0;
  std::optional<std::int64_t> first_query = {}, first_key = {};  // positions
  bool tokens_first = false;
  std::int64_t heads = 2, key_heads = 1, batch = 1;
  std::vector<std::int64_t> packed = {}, packed_keys = {};
};
std::ostream& operator<<(std::ostream& out, const BandCase& one) {
  out << one.queries << " queries, " << one.keys << " keys, window " << one.window;
  if (one.causal) out << ", causal";
  if (one.first_query) out << ", queries from " << *one.first_query;
  if (one.first_key) out << ", keys from " << *one.first_key;
  if (!one.packed.empty()) out << ", packed " << ::testing::PrintToString(one.packed);
  if (!one.packed_keys.empty()) out << " over " << ::testing::PrintToString(one.packed_keys);
  return out;
}
// Keys before the window of the first query: nothing of them may be read, and they have no gradient.
std::int64_t unseen_keys(const BandCase& one) {
  return one.window > 0 ? std::max<std::int64_t>(0, one.keys - one.queries - one.window + 1) : 0;
}

// Tiles have 128 keys or (for gradients of more than 128 features) 64, and 128 queries (64 for gradients): lengths and
// windows below, at and above that.
const std::vector<BandCase> kBands = {
    {1, 1},
    {1, 100},
    {77, 77},
    {128, 128},
    {129, 129},
    {300, 300, false, 0, {}, {}, true, 4, 2, 2},
    {37, 300},
    {200, 77},
    {520, 130},
    {1, 100, true},
    {37, 300, true},
    {130, 517, true},
    {200, 264, true, 0, {}, {}, true, 4, 2, 2},
    {300, 200, true},
    {400, 100, true},
    {130, 130, true, 1},
    {300, 300, true, 9},
    {300, 300, true, 64},
    {400, 400, true, 130},
    {700, 700, true, 300},
    {300, 300, false, 1},
    {300, 300, false, 9},
    {400, 400, false, 128},
    {700, 700, false, 300},
    {150, 700, true, 200},
    {150, 700, false, 40},
    {300, 100, true, 50},
    {300, 100, false, 50},
    {100, 100, true, 1000},
    {300, 300, false, 0, 50, 7},
    {300, 300, false, 0, 3, 120},
    {150, 300, true, 0, 1000, 0},
    {300, 300, true, 100, 5, 5},
    {.queries = 300, .keys = 300, .causal = true, .packed = {77, 130, 93}},
    {.queries = 300, .keys = 300, .packed = {1, 0, 128, 171}},
    {.queries = 600,
     .keys = 600,
     .causal = true,
     .window = 50,
     .tokens_first = true,
     .heads = 4,
     .key_heads = 2,
     .batch = 2,
     .packed = {333, 64, 203}},
    {.queries = 600, .keys = 600, .window = 150, .packed = {500, 100}},
    {.queries = 300, .keys = 700, .causal = true, .packed = {100, 150, 50}, .packed_keys = {100, 500, 100}},
    {.queries = 300, .keys = 250, .packed = {100, 150, 50}, .packed_keys = {20, 100, 130}},
    {.queries = 300, .keys = 250, .causal = true, .packed = {100, 150, 50}, .packed_keys = {120, 0, 130}},
};

// Another bias for every distance up to `left` before the query and `right` after it, and a constant beyond.
Form table_of_both(std::int64_t heads, std::int64_t left, std::int64_t right) {
  DistanceTable table;
  table.axes.push_back({-left, {}, true});
  for (std::int64_t row = 0; row <= left + right; ++row) table.axes[0].entries.push_back(row);
  table.values = as_doubles(normal_values<float>((left + right + 1) * heads, 1, 9));
  return Bias{heads, table};
}
Form form_named(const std::string& name, const BandCase& one, std::int64_t features) {
  if (name == "distances") return table_of_both(one.heads, 40, 50);
  if (name == "far distances") return table_of_both(one.heads, 256, 256);
  if (name == "one side") return table_of_both(one.heads, 128, 0);
  return form_of(name, {one.batch, one.heads, one.key_heads, one.queries, features});
}
// Packed, or more than 128 features: one kernel for both sides, and q rotated before.
std::string kernel_of(const std::string& name, const BandCase& one, std::int64_t features) {
  const bool is_moved = one.first_query.value_or(0) - one.first_key.value_or(0) != one.keys - one.queries;
  const bool is_one_sided =
      features <= 128 && one.packed.empty() && (one.causal || one.window == 1) && !(one.first_query && is_moved);
  const std::string packed = one.packed.empty() ? "" : "_packed", sides = (is_one_sided ? "" : "_both") + packed;
  if (name == "none") return name + packed;
  if (name == "slopes") return name + sides;
  if (name != "rotation") return "distances" + sides;
  const bool is_inside = features <= 128 && one.queries == one.keys && one.first_query == one.first_key;
  return is_inside && one.packed.empty() ? "rotation" : "none" + packed;
}

// The positions of packed sequences: the queries at the end of the keys, or the other way round.
std::vector<std::int64_t> packed_ids(const BandCase& one, bool of_keys) {
  std::vector<std::int64_t> ids;
  for (std::size_t s = 0; s < one.packed.size(); ++s) {
    const std::int64_t queries = one.packed[s], keys = one.packed_keys.empty() ? queries : one.packed_keys[s];
    const std::int64_t first = std::max<std::int64_t>(of_keys ? queries - keys : keys - queries, 0);
    for (std::int64_t n = 0; n < (of_keys ? keys : queries); ++n) ids.push_back(first + n);
  }
  return ids;
}

template <class T> struct OnBoth {
  Extents shape;
  bool tokens_first;
  std::vector<T> narrow;
  std::vector<double> wide;
  cuda::Memory memory;

  OnBoth(const BandCase& one, std::int64_t heads, std::int64_t tokens, std::int64_t features, std::uint64_t seed)
      : shape(one.tokens_first ? Extents{one.batch, tokens, heads, features}
                               : Extents{one.batch, heads, tokens, features}),
        tokens_first(one.tokens_first),
        narrow(normal_values<T>(count_of(shape), 1, seed)),
        wide(as_doubles(narrow)),
        memory(cuda::memory_of(narrow)) {}
  TensorView host() { return turned(view(wide.data(), shape)); }
  TensorView gpu() const {
    return turned(on(Device::kCuda, TensorView(memory.as<void>(), data_type_of<T>(), shape)));
  }
  TensorView turned(TensorView x) const { return tokens_first ? swap_axes(x, 1, 2) : x; }
  void poison() const { cuda::fill(memory.as<void>(), 0xFF, memory.size()); }
  // What no query attends to need not be a number.
  void spoil(std::int64_t tokens) {
    const T bad = numerics::narrow<T>(std::numeric_limits<double>::quiet_NaN());
    const std::int64_t features = shape[3], inner = shape[2], outer = shape[0] * shape[1];
    for (std::int64_t n = 0; n < outer * inner; ++n) {
      if ((tokens_first ? n / inner % shape[1] : n % inner) >= tokens) continue;
      std::fill_n(narrow.begin() + n * features, features, bad);
    }
    memory.write(narrow.data(), narrow.size() * sizeof(T));
  }
  std::vector<double> values() const { return as_doubles(memory.values<T>(narrow.size())); }
};

void expect_rows(const std::vector<double>& got, const std::vector<double>& want, std::int64_t features) {
  double worst = 0;
  for (std::size_t row = 0; row < got.size(); row += static_cast<std::size_t>(features)) {
    const auto end = row + static_cast<std::size_t>(features);
    const std::vector<double> mine(got.begin() + std::ptrdiff_t(row), got.begin() + std::ptrdiff_t(end)),
        its(want.begin() + std::ptrdiff_t(row), want.begin() + std::ptrdiff_t(end));
    worst = std::max(worst, relative_error(mine, its));
  }
  EXPECT_LT(relative_error(got, want), kOfNorm);
  EXPECT_LT(worst, kOfRow);
}
bool has(const std::vector<std::string>& names, const std::string& wanted) {
  return std::find(names.begin(), names.end(), wanted) != names.end();
}

template <class T> void expect_band(const BandCase& one, const std::string& name, std::int64_t features) {
  SCOPED_TRACE(::testing::Message() << name << ", " << features << " features, " << one);
  const std::int64_t values = features == 192 ? 128 : features;
  OnBoth<T> q(one, one.heads, one.queries, features, 1), k(one, one.key_heads, one.keys, features, 2),
      v(one, one.key_heads, one.keys, values, 3), g(one, one.heads, one.queries, values, 4),
      out(one, one.heads, one.queries, values, 5), dq(one, one.heads, one.queries, features, 6),
      dk(one, one.key_heads, one.keys, features, 7), dv(one, one.key_heads, one.keys, values, 8);
  const std::int64_t unseen = unseen_keys(one);
  if (unseen > 0) k.spoil(unseen), v.spoil(unseen);
  AttentionOptions options{.position = form_named(name, one, features), .causal = one.causal, .window = one.window};
  if (one.first_query) options.query_positions = Positions{.first = *one.first_query};
  if (one.first_key) options.key_positions = Positions{.first = *one.first_key};
  options.packed = one.packed, options.packed_keys = one.packed_keys;
  const Extents sums_shape = {one.batch, one.heads, one.queries};
  std::vector<double> sums(static_cast<std::size_t>(count_of(sums_shape)));
  AttentionOptions on_host = options, on_gpu = options;
  on_host.logsumexp = view(sums.data(), sums_shape);
  const auto* const rotation = std::get_if<Rotation>(&options.position);
  if (rotation == nullptr) {
    attention(out.host(), q.host(), k.host(), v.host(), on_host);
  } else {  // rotated q and k are rounded
    const auto rotated = [&](const OnBoth<T>& x, const Rotation& form, std::int64_t first, bool of_keys) {
      std::vector<T> narrow = x.narrow;
      const std::vector<std::int64_t> ids = packed_ids(one, of_keys);
      const Positions positions = ids.empty() ? Positions{.first = first} : Positions{.ids = ids};
      rotate(x.turned(view(narrow.data(), x.shape)), positions, form);
      return as_doubles(narrow);
    };
    auto wide_q = rotated(q, *rotation, one.first_query.value_or(std::max<std::int64_t>(0, one.keys - one.queries)),
                          false),
         wide_k = rotated(k, for_keys(*rotation),
                          one.first_key.value_or(std::max<std::int64_t>(0, one.queries - one.keys)), true);
    on_host.position = Nothing{};
    attention(out.host(), q.turned(view(wide_q.data(), q.shape)), k.turned(view(wide_k.data(), k.shape)), v.host(),
              on_host);
  }

  const cuda::Memory gpu_sums(sums.size() * sizeof(float));
  for (const OnBoth<T>* x : {&out, &dq, &dk, &dv}) x->poison();
  cuda::fill(gpu_sums.as<void>(), 0xFF, gpu_sums.size());
  on_gpu.logsumexp = on(Device::kCuda, TensorView(gpu_sums.as<void>(), DataType::kF32, sums_shape));
  const std::string type = data_type_of<T>() == DataType::kF16 ? "f16" : "bf16",
                    suffix = type + "_" + kernel_of(name, one, features) + "_" + std::to_string(features);
  {
    const kernels::cuda::ListKernels list;
    attention(out.gpu(), q.gpu(), k.gpu(), v.gpu(), on_gpu);
    EXPECT_TRUE(has(list.names(), "attention_sm90_" + suffix)) << ::testing::PrintToString(list.names());
  }
  synchronize();
  expect_rows(out.values(), out.wide, values);
  const auto got_sums = gpu_sums.values<float>(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    if (sums[i] == -HUGE_VAL) {
      ASSERT_EQ(static_cast<double>(got_sums[i]), sums[i]) << i;
    } else {
      ASSERT_NEAR(got_sums[i], sums[i], kOfLogsumexp * std::max(1.0, std::fabs(sums[i]) * 0.02)) << i;
    }
  }

  const auto* const bias = std::get_if<Bias>(&options.position);
  const bool has_table = bias != nullptr && std::holds_alternative<DistanceTable>(bias->source);
  const Extents p_shape =
      has_table ? table_of(std::get<DistanceTable>(bias->source), one.heads).shape : Extents{1, 1};
  std::vector<double> d_table(static_cast<std::size_t>(count_of(p_shape)));
  const cuda::Memory gpu_table = cuda::memory_of(std::vector<float>(d_table.size(), 0.5f));
  attention_backward({dq.host(), dk.host(), dv.host(), has_table ? view(d_table.data(), p_shape) : TensorView{}},
                     g.host(), {q.host(), k.host(), v.host()}, options);
  {
    const kernels::cuda::ListKernels list;
    attention_backward(
        {dq.gpu(), dk.gpu(), dv.gpu(),
         has_table ? on(Device::kCuda, TensorView(gpu_table.as<void>(), DataType::kF32, p_shape)) : TensorView{}},
        g.gpu(), {q.gpu(), k.gpu(), v.gpu(), out.gpu(), on_gpu.logsumexp}, options);
    const std::string kernel = kernel_of(name, one, features), bare = kernel == "rotation" ? "none" : kernel;
    std::string wanted = "attention_backward_sm90_" + type + "_" + bare + "_" + std::to_string(features);
    if (unseen > 0) wanted = "sm80_keys_" + type + (features > 128 ? "_256_dv" : "_" + std::to_string(features));
    EXPECT_TRUE(has(list.names(), wanted)) << wanted << ' ' << ::testing::PrintToString(list.names());
  }
  synchronize();
  // If every query attends to one key only, weights are 1 whatever q and k are: dq and dk are zero but for rounding.
  const bool is_alone = one.keys == 1 || one.window == 1;
  const auto expect_near = [&](const char* what, const OnBoth<T>& x, bool is_zero) {
    if (!is_zero) {
      EXPECT_LT(relative_error(x.values(), x.wide), unseen > 0 ? 8e-3 : kOfGradient) << what;
      return;
    }
    for (const double value : x.values()) ASSERT_NEAR(value, 0, 0.2) << what;
  };
  expect_near("dq", dq, is_alone);
  expect_near("dk", dk, is_alone);
  expect_near("dv", dv, false);
  if (!has_table || is_alone) return;
  auto table = as_doubles(gpu_table.values<float>(d_table.size()));
  for (double& value : table) value -= 0.5;
  // If all distances read one entry, its gradient is zero but for rounding, as the sum of every row of dS.
  double norm = 0;
  for (const double value : d_table) norm += value * value;
  if (norm > 1e-12) {
    EXPECT_LT(relative_error(table, d_table), kOfTable);
  } else {
    // The slower kernels add up rounded terms; the others compute an entry that all far keys share from the rest.
    for (const double value : table) ASSERT_NEAR(value, 0, unseen > 0 && features > 128 ? 0.1 : 1e-3);
  }
}

class CudaAttentionBand : public ::testing::TestWithParam<std::tuple<std::string, int>> {};
TEST_P(CudaAttentionBand, IsTheReferenceWithinItsError) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const auto& [name, features] = GetParam();
  std::size_t number = features == 192 ? 1 : 0;
  for (const BandCase& one : kBands) {
    if (features > 128 && number++ % 2 == 1) continue;  // the reference takes its time; one of them takes each case
    expect_band<BFloat16>(one, name, features);
    if (one.queries >= 200) expect_band<Half>(one, name, features);
  }
}
INSTANTIATE_TEST_SUITE_P(Positions, CudaAttentionBand,
                         ::testing::Combine(::testing::Values("none", "slopes", "distances", "far distances",
                                                              "one side", "rotation"),
                                            ::testing::Values(64, 128, 192, 256)));

void expect_numbers(const BandCase& one, const std::string& name, std::int64_t features) {
  const std::int64_t values = features == 192 ? 128 : features;
  const OnBoth<BFloat16> q(one, one.heads, one.queries, features, 1), k(one, one.key_heads, one.keys, features, 2),
      v(one, one.key_heads, one.keys, values, 3), g(one, one.heads, one.queries, values, 4),
      out(one, one.heads, one.queries, values, 5), dq(one, one.heads, one.queries, features, 6),
      dk(one, one.key_heads, one.keys, features, 7), dv(one, one.key_heads, one.keys, values, 8);
  for (const OnBoth<BFloat16>* x : {&out, &dq, &dk, &dv}) x->poison();
  const cuda::Memory table = cuda::memory_of(std::vector<float>(static_cast<std::size_t>(513 * one.heads)));
  const bool has_table = name == "far distances";
  const AttentionOptions options{
      .position = form_named(name, one, features), .causal = one.causal, .window = one.window};
  attention(out.gpu(), q.gpu(), k.gpu(), v.gpu(), options);
  attention_backward(
      {dq.gpu(), dk.gpu(), dv.gpu(),
       has_table ? on(Device::kCuda, TensorView(table.as<void>(), DataType::kF32, {513, one.heads})) : TensorView{}},
      g.gpu(), {q.gpu(), k.gpu(), v.gpu()}, options);
  synchronize();
  for (const OnBoth<BFloat16>* x : {&out, &dq, &dk, &dv}) {
    const auto found = x->values();
    EXPECT_TRUE(std::all_of(found.begin(), found.end(), [](double value) { return std::isfinite(value); }))
        << name << ", " << features << " features, " << one;
  }
}
// For compute-sanitizer, which sees accesses outside of the tensors: both passes, and only that numbers come out.
TEST(CudaAttentionBands, StayWithinTheirTensors) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* name : {"none", "slopes", "far distances", "rotation"}) {
    for (const BandCase& one :
         {BandCase{129, 129}, {37, 300, true}, {300, 200, true}, {150, 150, false, 9}, {200, 200, true, 64}}) {
      for (const std::int64_t features : {64, 192, 256}) expect_numbers(one, name, features);
    }
  }
}

// Few queries over a cache have a kernel of their own, and so has what the table above does not hold.
TEST(CudaAttentionBands, LeaveTheRestToOthers) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const auto taken_by = [](const BandCase& one, const AttentionOptions& options) {
    const OnBoth<BFloat16> q(one, one.heads, one.queries, 64, 1), k(one, one.key_heads, one.keys, 64, 2),
        out(one, one.heads, one.queries, 64, 3);
    const kernels::cuda::ListKernels list;
    attention(out.gpu(), q.gpu(), k.gpu(), k.gpu(), options);
    synchronize();
    return list.names();
  };
  EXPECT_TRUE(has(taken_by({2, 500}, {}), "decode_sm80_bf16_64_8"));
  EXPECT_TRUE(has(taken_by({2, 500}, {.causal = true, .window = 200}), "decode_sm80_bf16_64_8"));
  EXPECT_TRUE(has(taken_by({200, 200}, {.chunk = 64}), "attention_sm80_bf16_64"));
  EXPECT_TRUE(has(taken_by({200, 200}, {.position = table_of_both(2, 300, 0)}), "attention_sm80_bf16_64"));
  EXPECT_TRUE(has(taken_by({200, 200}, {.position = table_of_both(2, 0, 300)}), "attention_sm80_bf16_64"));
  EXPECT_TRUE(has(taken_by({200, 200}, {.position = table_of_both(2, 0, 300), .causal = true}),
                  "attention_sm90_bf16_distances_64"));
}

}  // namespace
}  // namespace posenc::cuda_band_test
#endif
