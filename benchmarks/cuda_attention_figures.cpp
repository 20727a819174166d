#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "benchmarks/cuda_figures.h"
#include "posenc/attention.h"
#include "posenc/cuda.h"
#include "posenc/scheme.h"

namespace posenc::figures {
namespace {

double middle(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

void fill_with_normals(const cuda::Memory& memory) {
  std::mt19937_64 random(3);
  std::normal_distribution<float> normal;
  std::vector<std::uint16_t> values((std::size_t{1} << 20) + 7);  // so that tiles are not alike
  for (std::uint16_t& value : values)
    value = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(normal(random)) >> 16);
  for (std::size_t at = 0; at < memory.size(); at += values.size() * 2) {
    memory.write(values.data(), std::min(values.size() * 2, memory.size() - at), at);
  }
}

// Milliseconds of each job; in turn, each after a pause, so that all meet the same clock.
std::vector<double> times_in_turn(const std::vector<std::function<void()>>& jobs) {
  constexpr int kRounds = 8;
  std::vector<std::vector<double>> times(jobs.size());
  for (int n = 0; n < kRounds; ++n) {
    for (std::size_t which = 0; which < jobs.size(); ++which) {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
      jobs[which]();
      const double milliseconds = cuda::time_once(jobs[which], {}, true);
      if (n > 0) times[which].push_back(milliseconds);
    }
  }
  std::vector<double> all;
  for (const std::vector<double>& one : times) all.push_back(middle(one));
  return all;
}

struct NamedForm {
  std::string name;
  Form form;
};
std::vector<NamedForm> attention_forms(std::int64_t heads, std::int64_t features) {
  Slopes slopes;
  for (std::int64_t h = 1; h <= heads; ++h) {
    slopes.slopes.push_back(std::exp2(-8.0 * static_cast<double>(h) / static_cast<double>(heads)));
  }
  DistanceTable table;  // as T5's: constant from a distance of 128 on
  table.axes.push_back({-128, {}, true});
  for (std::int64_t row = 0; row <= 128; ++row) table.axes[0].entries.push_back(row);
  std::mt19937_64 random(2);
  std::normal_distribution<double> normal;
  for (std::int64_t n = 0; n < 129 * heads; ++n) table.values.push_back(normal(random));
  return {{"no position", Nothing{}},
          {"ALiBi", Bias{heads, slopes}},
          {"T5", Bias{heads, table}},
          {"RoPE made inside", prepare(Rope{.dims = static_cast<int>(features)})}};
}

}  // namespace

std::vector<CudaFigure> measure_decoding() {
  if (cuda::facts().capability < 80) return {};
  constexpr std::int64_t kBatch = 32, kHeads = 32, kKeyHeads = 8, kKeys = 8192, kFeatures = 128;
  const Extents q_shape = {kBatch, kHeads, 1, kFeatures}, k_shape = {kBatch, kKeyHeads, kKeys, kFeatures};
  const std::size_t bytes = static_cast<std::size_t>(count_of(k_shape)) * 2,
                    q_bytes = static_cast<std::size_t>(count_of(q_shape)) * 2;
  const cuda::Memory q(q_bytes), out(q_bytes), k(bytes), v(bytes);
  for (const cuda::Memory* x : {&q, &k, &v}) fill_with_normals(*x);
  const auto tensor = [&](const cuda::Memory& x, const Extents& shape) {
    return on(Device::kCuda, TensorView(x.as<void>(), DataType::kBF16, shape));
  };
  const std::vector<NamedForm> forms = attention_forms(kHeads, kFeatures);
  std::vector<std::function<void()>> jobs;
  jobs.push_back([&] {
    cuda::read_all(k.as<void>(), bytes);
    cuda::read_all(v.as<void>(), bytes);
  });
  constexpr std::size_t kForms = 3;  // a cache holds keys that are rotated already
  for (std::size_t which = 0; which < kForms; ++which) {
    jobs.push_back([&, which] {
      attention(tensor(out, q_shape), tensor(q, q_shape), tensor(k, k_shape), tensor(v, k_shape),
                {.position = forms[which].form, .causal = true});
    });
  }
  // The same memory as pages of 16 tokens in any order: [pages, page, key heads, features], as vLLM's.
  constexpr std::int64_t kPage = 16, kPages = kBatch * kKeys / kPage;
  const Extents pool_shape = {kPages, kPage, kKeyHeads, kFeatures};
  const std::vector<std::int64_t> lengths(kBatch, kKeys);
  std::vector<std::int32_t> block_table(static_cast<std::size_t>(kPages));
  std::iota(block_table.begin(), block_table.end(), 0);
  std::shuffle(block_table.begin(), block_table.end(), std::mt19937_64(4));
  const auto pool = [&](const cuda::Memory& x) { return swap_axes(tensor(x, pool_shape), 1, 2); };
  for (std::size_t which = 0; which < kForms; ++which) {
    jobs.push_back([&, which] {
      attention(tensor(out, q_shape), tensor(q, q_shape), pool(k), pool(v),
                {.position = forms[which].form, .causal = true, .key_lengths = lengths, .block_table = block_table});
    });
  }
  const std::vector<double> times = times_in_turn(jobs);
  std::vector<CudaFigure> all;
  for (std::size_t which = 0; which < 2 * kForms; ++which) {
    CudaFigure one;
    one.job = std::string("decode attention bf16 B32 over 8192 keys, ") + (which < kForms ? "" : "paged, ") +
              forms[which % kForms].name;
    one.milliseconds = one.alone = times[which + 1];
    one.gb_per_s = 2.0 * static_cast<double>(bytes) / one.milliseconds / 1e6;
    one.limit = "read";
    one.limit_gb_per_s = 2.0 * static_cast<double>(bytes) / times[0] / 1e6;
    one.bar = "80 %", one.goal = "92 %";
    one.meets_bar = one.of_limit() >= 0.80;
    all.push_back(one);
  }
  return all;
}

std::vector<CudaFigure> measure_cuda_attention() {
  if (cuda::facts().capability != 90) return {};
  std::vector<CudaFigure> all;
  struct Size {
    std::int64_t batch, heads, tokens, features = 128, values = 128;
  };
  for (const Size& size :
       {Size{4, 16, 4096}, Size{2, 16, 16384}, Size{4, 8, 4096, 256, 256}, Size{4, 16, 4096, 192, 128}}) {
    const std::int64_t rows = size.batch * size.heads * size.tokens;
    const Extents sums_shape = {size.batch, size.heads, size.tokens};
    const auto q_bytes = static_cast<std::size_t>(rows * size.features * 2),
               v_bytes = static_cast<std::size_t>(rows * size.values * 2);
    const cuda::Memory q(q_bytes), k(q_bytes), v(v_bytes), out(v_bytes), g(v_bytes), dq(q_bytes), dk(q_bytes),
        dv(v_bytes), sums(static_cast<std::size_t>(rows) * 4),
        d_table(static_cast<std::size_t>(129 * size.heads) * 4);
    for (const cuda::Memory* x : {&q, &k, &v, &g}) fill_with_normals(*x);
    const auto tensor = [&](const cuda::Memory& x) {
      const std::int64_t features = static_cast<std::int64_t>(x.size()) / (rows * 2);
      return on(Device::kCuda,
                TensorView(x.as<void>(), DataType::kBF16, {size.batch, size.heads, size.tokens, features}));
    };
    const TensorView logsumexp = on(Device::kCuda, TensorView(sums.as<void>(), DataType::kF32, sums_shape));
    const TensorView table_gradient =
        on(Device::kCuda, TensorView(d_table.as<void>(), DataType::kF32, {129, size.heads}));
    cuda::fill(d_table.as<void>(), 0, d_table.size());
    const std::vector<NamedForm> forms = attention_forms(size.heads, size.features);
    std::vector<std::function<void()>> jobs;
    for (const NamedForm& one : forms) {
      jobs.push_back(
          [&] { attention(tensor(out), tensor(q), tensor(k), tensor(v), {.position = one.form, .causal = true}); });
    }
    for (const NamedForm& one : forms) {
      jobs.push_back([&] {
        const AttentionOptions options{.position = one.form, .causal = true, .logsumexp = logsumexp};
        attention(tensor(out), tensor(q), tensor(k), tensor(v), options);
        attention_backward({tensor(dq), tensor(dk), tensor(dv), one.name == "T5" ? table_gradient : TensorView{}},
                           tensor(g), {tensor(q), tensor(k), tensor(v), tensor(out), logsumexp},
                           {.position = one.form, .causal = true});
      });
    }
    const std::vector<double> times = times_in_turn(jobs);
    const double operations =
        static_cast<double>(rows) * static_cast<double>(size.tokens * (size.features + size.values));
    for (std::size_t which = 0; which < jobs.size(); ++which) {
      const bool is_backward = which >= forms.size();
      const NamedForm& form = forms[which % forms.size()];
      const bool is_rotation = std::holds_alternative<Rotation>(form.form), is_large = size.features > 128;
      CudaFigure one;
      one.job = std::string(is_backward ? "attention and its gradients" : "attention") + " bf16 B" +
                std::to_string(size.batch) + " S" + std::to_string(size.tokens) +
                (is_large ? " D" + std::to_string(size.features) : "") + ", " + form.name;
      one.milliseconds = one.alone = times[which];
      one.tflop_per_s = operations * (is_backward ? 3.5 : 1) / one.milliseconds / 1e9;
      one.bar = is_rotation ? "1.0 of cuDNN" : is_backward ? "1.03 of cuDNN" : "1.05 of cuDNN";
      one.goal = is_rotation ? "1.08" : is_backward || size.tokens != 4096 ? "1.15" : "1.12";
      if (is_large)
        one.bar = is_backward ? "0.95 of cuDNN" : "1.0 of cuDNN", one.goal = is_backward ? "1.05" : "1.10";
      all.push_back(one);
    }
  }
  return all;
}

}  // namespace posenc::figures
