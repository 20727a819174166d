// Attention of tensors on a GPU, against the reference in f64: odd lengths, few key heads, both axis orders, large
// scores; outputs are poisoned before each call.

#include <gtest/gtest.h>

#include <algorithm>

#include "cuda_cases.h"
#include "posenc/cuda.h"

namespace posenc::cuda_attention_test {
namespace {

using namespace cuda_cases;

constexpr double kOfNorm = 3e-3, kOfRow = 1.2e-2, kOfLogsumexp = 2e-3;

template <class T> void expect_reference(const GpuCase& one, const std::string& name) {
  SCOPED_TRACE(::testing::Message() << name << " tokens " << one.tokens << " features " << one.features << " heads "
                                    << one.heads << '/' << one.key_heads << " size " << one.query_size);
  const Extents q_shape = shape_of(one, one.heads), k_shape = shape_of(one, one.key_heads);
  const auto q = normal_values<T>(count_of(q_shape), one.query_size, 1),
             k = normal_values<T>(count_of(k_shape), 1, 2), v = normal_values<T>(count_of(k_shape), 1, 3);
  const Form form = form_of(name, one);
  const Extents lse_shape = {one.batch, one.heads, one.tokens};

  auto wide_q = as_doubles(q), wide_k = as_doubles(k), wide_v = as_doubles(v);
  std::vector<double> want(wide_q.size()), want_lse(static_cast<std::size_t>(count_of(lse_shape)));
  AttentionOptions options{.position = form, .causal = true, .logsumexp = view(want_lse.data(), lse_shape)};
  attention(ordered(one, view(want.data(), q_shape)), ordered(one, view(wide_q.data(), q_shape)),
            ordered(one, view(wide_k.data(), k_shape)), ordered(one, view(wide_v.data(), k_shape)), options);

  const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k), gpu_v = cuda::memory_of(v),
                     gpu_out(q.size() * sizeof(T)), gpu_lse(want_lse.size() * sizeof(float));
  cuda::fill(gpu_out.as<void>(), 0xFF, gpu_out.size());
  cuda::fill(gpu_lse.as<void>(), 0xFF, gpu_lse.size());
  options.logsumexp = on(Device::kCuda, TensorView(gpu_lse.as<void>(), DataType::kF32, lse_shape));
  attention(on_gpu<T>(one, gpu_out, q_shape), on_gpu<T>(one, gpu_q, q_shape), on_gpu<T>(one, gpu_k, k_shape),
            on_gpu<T>(one, gpu_v, k_shape), options);
  synchronize();
  const auto bits = gpu_out.values<T>(q.size());
  const std::vector<double> got = as_doubles(bits);
  const auto lse = gpu_lse.values<float>(want_lse.size());

  double off = 0, norm = 0, worst = 0;
  for (std::size_t row = 0; row < got.size(); row += static_cast<std::size_t>(one.features)) {
    double row_off = 0, row_norm = 0;
    for (std::size_t i = row; i < row + static_cast<std::size_t>(one.features); ++i) {
      ASSERT_TRUE(std::isfinite(got[i])) << i;
      row_off += std::pow(got[i] - want[i], 2), row_norm += std::pow(want[i], 2);
    }
    off += row_off, norm += row_norm;
    worst = std::max(worst, std::sqrt(row_off / row_norm));
  }
  EXPECT_LT(std::sqrt(off / norm), kOfNorm);
  EXPECT_LT(worst, kOfRow);
  // Rotated q and k are rounded to 16 bits, which moves scores by their share of |q||k|.
  const double lse_error = name == "rotation" ? 0.05 * one.query_size : kOfLogsumexp;
  for (std::size_t i = 0; i < lse.size(); ++i) {
    ASSERT_NEAR(lse[i], want_lse[i], lse_error * std::max(1.0, std::fabs(want_lse[i]) * 0.02)) << i;
  }

  // The same bytes again.
  attention(on_gpu<T>(one, gpu_out, q_shape), on_gpu<T>(one, gpu_q, q_shape), on_gpu<T>(one, gpu_k, k_shape),
            on_gpu<T>(one, gpu_v, k_shape), options);
  synchronize();
  EXPECT_EQ(gpu_out.values<T>(q.size()), bits);
}

TEST(CudaAttention, IsTheReferenceWithinItsError) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* name : {"none", "slopes", "distances", "rotation"}) {
    for (const std::int64_t features : {64, 128}) {
      for (const std::int64_t tokens : {1, 77, 128, 129, 640, 1000}) {
        expect_reference<BFloat16>({1, 2, 2, tokens, features}, name);
      }
      expect_reference<BFloat16>({2, 8, 2, 300, features, 1, true}, name);
      expect_reference<Half>({2, 4, 1, 300, features, 1, false}, name);
    }
  }
}

TEST(CudaAttention, HotScoresKeepTheirMaximum) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* name : {"none", "slopes", "distances"}) {
    for (const double size : {0.02, 5.0, 30.0, 100.0}) {
      expect_reference<BFloat16>({1, 2, 2, 700, 128, size}, name);
      expect_reference<Half>({1, 2, 2, 700, 128, size}, name);
    }
  }
}

TEST(CudaAttention, RefusesWhatThereIsNoKernelFor) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const cuda::Memory x(std::size_t{5} << 16);
  const auto tensor = [&](DataType type, std::int64_t features, std::size_t offset) {
    return on(Device::kCuda, TensorView(x.as<char>() + offset, type, {1, 1, 16, features}));
  };
  const auto refuses = [&](DataType type, std::int64_t features, const AttentionOptions& options) {
    EXPECT_THROW(attention(tensor(type, features, 0), tensor(type, features, 1 << 16),
                           tensor(type, features, 2 << 16), tensor(type, features, 3 << 16), options),
                 Error);
  };
  refuses(DataType::kF64, 64, {.causal = true});
  refuses(DataType::kBF16, 264, {.causal = true});
  const cuda::Memory weights(2 * 16 * 16);
  refuses(DataType::kBF16, 64,
          {.causal = true,
           .weights = on(Device::kCuda, TensorView(weights.as<void>(), DataType::kBF16, {1, 1, 16, 16}))});
  AttentionOptions gates{.position = Bias{0, GateSums{}}, .causal = true};
  gates.log_gates = on(Device::kCuda, ConstTensorView(weights.as<void>(), DataType::kF32, {1, 1, 16}));
  refuses(DataType::kBF16, 64, gates);
}

// A rotation inside attention is that of rotate before it, to the last byte.
template <class T> void expect_rotation_of_rotate(const GpuCase& one, const Rotation& form) {
  SCOPED_TRACE(::testing::Message() << one.features << " features, " << one.tokens << " tokens, " << one.heads << '/'
                                    << one.key_heads << ' ' << one.tokens_first);
  const Extents q_shape = shape_of(one, one.heads), k_shape = shape_of(one, one.key_heads);
  const auto q = cuda::memory_of(normal_values<T>(count_of(q_shape), 1, 1)),
             k = cuda::memory_of(normal_values<T>(count_of(k_shape), 1, 2)),
             v = cuda::memory_of(normal_values<T>(count_of(k_shape), 1, 3));
  const auto count = static_cast<std::size_t>(count_of(q_shape));
  const cuda::Memory got(2 * count), want(2 * count), rotated_q(2 * count),
      rotated_k(2 * static_cast<std::size_t>(count_of(k_shape)));
  const auto at = [&](const cuda::Memory& x, const Extents& shape) { return on_gpu<T>(one, x, shape); };
  cuda::fill(got.as<void>(), 0xFF, got.size());
  attention(at(got, q_shape), at(q, q_shape), at(k, k_shape), at(v, k_shape), {.position = form, .causal = true});
  rotate(at(rotated_q, q_shape), at(q, q_shape), {}, form);
  rotate(at(rotated_k, k_shape), at(k, k_shape), {}, for_keys(form));
  const double scale = form.softmax_factor / std::sqrt(static_cast<double>(one.features));
  attention(at(want, q_shape), at(rotated_q, q_shape), at(rotated_k, k_shape), at(v, k_shape),
            {.causal = true, .scale = scale});
  synchronize();
  EXPECT_EQ(as_doubles(got.values<T>(count)), as_doubles(want.values<T>(count)));
}
TEST(CudaAttention, RotatesAsRotateDoes) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const PairLayout layout : {PairLayout::kHalves, PairLayout::kInterleaved}) {
    expect_rotation_of_rotate<BFloat16>({2, 3, 1, 333, 128}, prepare(Rope{.dims = 128, .layout = layout}));
    expect_rotation_of_rotate<Half>({1, 2, 2, 150, 64, 1, true}, prepare(Rope{.dims = 64, .layout = layout}));
  }
}
TEST(CudaAttention, EveryKindOfRopeIsThatOfRotate) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const std::int64_t features : {64, 128}) {
    const auto dims = static_cast<int>(features);
    for (const Rope& rope :
         {Rope{.dims = dims}, Rope{.dims = dims, .layout = PairLayout::kInterleaved}, Rope{.dims = dims, .sign = -1},
          Rope{.dims = dims, .scaling = YarnScaling{.factor = 8, .original_length = 64}}, Rope{.dims = dims / 2},
          Rope{.dims = dims, .scaling = XposScaling{}}}) {
      expect_rotation_of_rotate<BFloat16>({2, 3, 1, 333, features}, prepare(rope));
      expect_rotation_of_rotate<Half>({1, 4, 2, 200, features, 1, true}, prepare(rope));
    }
    const Rotation rotation = prepare(Rope{.dims = dims});
    expect_rotation_of_rotate<Half>({1, 2, 2, 333, features},
                                    prepare(Rope{.dims = dims}, {.numerics = Numerics::kHfF32}));
    for (const std::int64_t tokens : {1, 7, 128, 129, 1500}) {
      expect_rotation_of_rotate<BFloat16>({1, 2, 2, tokens, features}, rotation);
    }
    // More row blocks than multiprocessors, so that each takes several: long, short and one tile.
    expect_rotation_of_rotate<BFloat16>({2, 16, 4, 1300, features, 1, true}, rotation);
  }
}

}  // namespace
}  // namespace posenc::cuda_attention_test
