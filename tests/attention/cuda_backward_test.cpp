// The gradients of attention on a GPU, against the reference in f64: odd lengths, few key heads, both axis orders;
// written outputs are poisoned before each call, and those that are added to start from nonzero values.

#include "cuda_cases.h"
#include "posenc/cuda.h"

namespace posenc::cuda_backward_test {
namespace {

using namespace cuda_cases;

// Of norms; a table's gradient is a sum of many small terms of both signs.
constexpr double kOfGradient = 6e-3, kOfTable = 2e-2;

// The gradient of a table of values that the form holds: [129, heads].
constexpr std::int64_t kRows = 129;

template <class T> void expect_gradients(const GpuCase& one, const std::string& name, bool saved = true) {
  SCOPED_TRACE(::testing::Message() << name << " tokens " << one.tokens << " features " << one.features << " heads "
                                    << one.heads << '/' << one.key_heads << " size " << one.query_size);
  const Extents q_shape = shape_of(one, one.heads), k_shape = shape_of(one, one.key_heads);
  const Extents sums_shape = {one.batch, one.heads, one.tokens}, table_shape = {kRows, one.heads};
  const auto q = normal_values<T>(count_of(q_shape), one.query_size, 1),
             k = normal_values<T>(count_of(k_shape), 1, 2), v = normal_values<T>(count_of(k_shape), 1, 3),
             g = normal_values<T>(count_of(q_shape), 1, 4);
  const Form form = form_of(name, one);
  const AttentionOptions options{.position = form, .causal = true};

  const auto wide_q = as_doubles(q), wide_k = as_doubles(k), wide_v = as_doubles(v), wide_g = as_doubles(g);
  std::vector<double> dq(q.size()), dk(k.size()), dv(v.size()),
      d_table(static_cast<std::size_t>(count_of(table_shape)));
  const bool has_table = name == "distances";
  const auto in = [&](const std::vector<double>& x, const Extents& shape) {
    return ConstTensorView(ordered(one, view(const_cast<double*>(x.data()), shape)));
  };
  const auto out = [&](std::vector<double>& x, const Extents& shape) { return ordered(one, view(x.data(), shape)); };
  attention_backward({out(dq, q_shape), out(dk, k_shape), out(dv, k_shape),
                      has_table ? view(d_table.data(), table_shape) : TensorView{}},
                     in(wide_g, q_shape), {in(wide_q, q_shape), in(wide_k, k_shape), in(wide_v, k_shape)}, options);

  const cuda::Memory gpu_q = cuda::memory_of(q), gpu_k = cuda::memory_of(k), gpu_v = cuda::memory_of(v),
                     gpu_g = cuda::memory_of(g), gpu_out(q.size() * sizeof(T)),
                     gpu_sums(static_cast<std::size_t>(count_of(sums_shape)) * sizeof(float)),
                     gpu_dq(q.size() * sizeof(T)), gpu_dk(k.size() * sizeof(T)), gpu_dv(v.size() * sizeof(T));
  const std::vector<float> before(d_table.size(), 0.5f);
  const cuda::Memory gpu_table = cuda::memory_of(before);
  for (const cuda::Memory* written : {&gpu_out, &gpu_sums, &gpu_dq, &gpu_dk, &gpu_dv}) {
    cuda::fill(written->as<void>(), 0xFF, written->size());
  }
  AttentionInputs inputs{on_gpu<T>(one, gpu_q, q_shape), on_gpu<T>(one, gpu_k, k_shape),
                         on_gpu<T>(one, gpu_v, k_shape)};
  if (saved) {
    AttentionOptions with_sums = options;
    with_sums.logsumexp = on(Device::kCuda, TensorView(gpu_sums.as<void>(), DataType::kF32, sums_shape));
    attention(on_gpu<T>(one, gpu_out, q_shape), inputs.q, inputs.k, inputs.v, with_sums);
    inputs.out = on_gpu<T>(one, gpu_out, q_shape);
    inputs.logsumexp = with_sums.logsumexp;
  }
  attention_backward(
      {on_gpu<T>(one, gpu_dq, q_shape), on_gpu<T>(one, gpu_dk, k_shape), on_gpu<T>(one, gpu_dv, k_shape),
       has_table ? on(Device::kCuda, TensorView(gpu_table.as<void>(), DataType::kF32, table_shape)) : TensorView{}},
      on_gpu<T>(one, gpu_g, q_shape), inputs, options);
  synchronize();
  // With one token every weight is 1: dq and dk are zero but for rounding.
  const auto expect_near = [&](const char* what, const cuda::Memory& got, const std::vector<double>& want,
                               double bound) {
    const auto values = as_doubles(got.values<T>(want.size()));
    if (one.tokens > 1) {
      EXPECT_LT(relative_error(values, want), bound) << what;
    } else {
      for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(values[i], want[i], 0.2) << what << ' ' << i;
    }
  };
  expect_near("dq", gpu_dq, dq, kOfGradient);
  expect_near("dk", gpu_dk, dk, kOfGradient);
  expect_near("dv", gpu_dv, dv, kOfGradient);
  if (!has_table || one.tokens == 1) return;
  auto table = as_doubles(gpu_table.values<float>(d_table.size()));
  for (double& value : table) value -= 0.5;
  EXPECT_LT(relative_error(table, d_table), kOfTable);
}

TEST(CudaAttentionBackward, IsTheReferenceWithinItsError) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  for (const char* name : {"none", "slopes", "distances", "rotation"}) {
    for (const std::int64_t features : {64, 128, 256}) {
      for (const std::int64_t tokens : {1, 64, 77, 128, 129, 640, 1000}) {
        expect_gradients<BFloat16>({1, 2, 2, tokens, features}, name);
      }
      expect_gradients<BFloat16>({2, 8, 2, 300, features, 1, true}, name);
      expect_gradients<Half>({2, 4, 1, 300, features, 1, false}, name, false);
    }
  }
}

TEST(CudaAttentionBackward, WritesOnlyWhatIsWanted) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const GpuCase one{1, 2, 2, 200, 64};
  const Extents shape = shape_of(one, 2);
  const auto x = normal_values<BFloat16>(count_of(shape), 1, 1);
  const cuda::Memory q = cuda::memory_of(x), dv(x.size() * 2), dk(x.size() * 2), dv_alone(x.size() * 2);
  const auto at = [&](const cuda::Memory& memory) { return on_gpu<BFloat16>(one, memory, shape); };
  const AttentionInputs inputs{at(q), at(q), at(q)};
  attention_backward({.k = at(dk), .v = at(dv)}, at(q), inputs, {.causal = true});
  attention_backward({.v = at(dv_alone)}, at(q), inputs, {.causal = true});
  synchronize();
  EXPECT_EQ(dv.values<BFloat16>(x.size()), dv_alone.values<BFloat16>(x.size()));
}

TEST(CudaAttentionBackward, RefusesWhatThereIsNoKernelFor) {
  if (const std::string reason = why_not(); !reason.empty()) GTEST_SKIP() << reason;
  const cuda::Memory x(std::size_t{8} << 16);
  const auto tensor = [&](DataType type, std::size_t offset) {
    return on(Device::kCuda, TensorView(x.as<char>() + (offset << 16), type, {1, 1, 16, 64}));
  };
  const auto refuses = [&](DataType type, const AttentionOptions& options) {
    EXPECT_THROW(attention_backward({.q = tensor(type, 4)}, tensor(type, 3),
                                    {tensor(type, 0), tensor(type, 1), tensor(type, 2)}, options),
                 Error);
  };
  refuses(DataType::kF32, {.causal = true});
  // A gradient on the host of tensors on the GPU.
  std::vector<BFloat16> host(16 * 64);
  EXPECT_THROW(
      attention_backward({.q = view(host.data(), {1, 1, 16, 64})}, tensor(DataType::kBF16, 3),
                         {tensor(DataType::kBF16, 0), tensor(DataType::kBF16, 1), tensor(DataType::kBF16, 2)},
                         {.causal = true}),
      Error);
}

}  // namespace
}  // namespace posenc::cuda_backward_test
