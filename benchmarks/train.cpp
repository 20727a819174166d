// posenc_train_bench [STEPS]: training steps of a decoder with 0.8 million parameters on one thread, in tokens for each second
// of processor time: with the library's attention, and with one that holds all scores in memory, products by OpenBLAS. After
// STEPS steps (default 40) it prints how much memory the process has ever held, after ten steps and at the end.
// benchmarks/peers/torch_training.py takes the same steps with torch.

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "lab/exponential.h"
#include "lab/products.h"
#include "lab/train.h"
#include "posenc/apply.h"

namespace {

using namespace posenc;
using lab::Matrix;
constexpr Run kOneThread = {.stream = nullptr, .threads = 1};

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double held_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

// Attention as most write it: all scores of a head in memory, softmax, product; the weights are kept for the gradient.
class Materialised {
 public:
  explicit Materialised(Rotation rotation) : rotation_(std::move(rotation)) {}

  void forward(TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v) {
    Layer& layer = next();
    const std::int64_t tokens = q.shape[2], features = q.shape[3], heads = q.shape[0] * q.shape[1];
    resize(layer.q, heads * tokens * features);
    resize(layer.k, heads * tokens * features);
    resize(layer.weights, heads * tokens * tokens);
    rotate({view(layer.q.data(), q.shape), view(layer.k.data(), k.shape)}, {q, k}, {}, rotation_, kOneThread);
    const float scale = 1 / std::sqrt(static_cast<float>(features));
    for (std::int64_t head = 0; head < heads; ++head) {
      float* const weights = layer.weights.data() + head * tokens * tokens;
      lab::multiply(
          Matrix<float>{weights, tokens}, Matrix<const float>{layer.q.data() + head * tokens * features, features},
          Matrix<const float>{layer.k.data() + head * tokens * features, features, true}, tokens, tokens, features);
      for (std::int64_t row = 0; row < tokens; ++row) soften(weights + row * tokens, row + 1, tokens, scale);
      lab::multiply(Matrix<float>{at<float>(out, head), out.strides[2]}, Matrix<const float>{weights, tokens},
                    Matrix<const float>{at<const float>(v, head), v.strides[2]}, tokens, features, tokens);
    }
  }

  void backward(const AttentionGradients& d, ConstTensorView d_out, const AttentionInputs& inputs) {
    Layer& layer = layers_[--used_];
    const ConstTensorView& q = inputs.q;
    const std::int64_t tokens = q.shape[2], features = q.shape[3], heads = q.shape[0] * q.shape[1];
    resize(scores_, tokens * tokens);
    const float scale = 1 / std::sqrt(static_cast<float>(features));
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* const weights = layer.weights.data() + head * tokens * tokens;
      const Matrix<const float> upstream = {at<const float>(d_out, head), d_out.strides[2]};
      lab::multiply(Matrix<float>{at<float>(d.v, head), d.v.strides[2]}, Matrix<const float>{weights, tokens, true},
                    upstream, tokens, features, tokens);
      lab::multiply(Matrix<float>{scores_.data(), tokens}, upstream,
                    Matrix<const float>{at<const float>(inputs.v, head), inputs.v.strides[2], true}, tokens, tokens,
                    features);
      for (std::int64_t row = 0; row < tokens; ++row) {
        float* const to = scores_.data() + row * tokens;
        const float* const weight = weights + row * tokens;
        float parts[8] = {};
        for (std::int64_t j = 0; j <= row; ++j) parts[j % 8] += to[j] * weight[j];
        float sum = 0;
        for (const float part : parts) sum += part;
        for (std::int64_t j = 0; j <= row; ++j) to[j] = (to[j] - sum) * weight[j] * scale;
        std::fill(to + row + 1, to + tokens, 0.0f);
      }
      lab::multiply(Matrix<float>{at<float>(d.q, head), d.q.strides[2]}, Matrix<const float>{scores_.data(), tokens},
                    Matrix<const float>{layer.k.data() + head * tokens * features, features}, tokens, features,
                    tokens);
      lab::multiply(
          Matrix<float>{at<float>(d.k, head), d.k.strides[2]}, Matrix<const float>{scores_.data(), tokens, true},
          Matrix<const float>{layer.q.data() + head * tokens * features, features}, tokens, features, tokens);
    }
    rotate_backward(d.q, {}, rotation_, kOneThread);
    rotate_backward(d.k, {}, rotation_, kOneThread);
  }

 private:
  struct Layer {
    std::vector<float> q, k, weights;
  };
  static void resize(std::vector<float>& values, std::int64_t count) {
    if (static_cast<std::int64_t>(values.size()) < count) values.resize(static_cast<std::size_t>(count));
  }
  Layer& next() {
    if (used_ == layers_.size()) layers_.emplace_back();
    return layers_[used_++];
  }
  template <class T, class View> static T* at(const View& x, std::int64_t head) {
    return static_cast<T*>(x.data) + head / x.shape[1] * x.strides[0] + head % x.shape[1] * x.strides[1];
  }
  // The softmax of the first `seen` scores; the others become 0.
  static void soften(float* row, std::int64_t seen, std::int64_t all, float scale) {
    float greatest = row[0];
    for (std::int64_t j = 1; j < seen; ++j) greatest = std::max(greatest, row[j]);
    float parts[8] = {};
    for (std::int64_t j = 0; j < seen; ++j) row[j] = lab::exponential((row[j] - greatest) * scale);
    for (std::int64_t j = 0; j < seen; ++j) parts[j % 8] += row[j];
    float sum = 0;
    for (const float part : parts) sum += part;
    for (std::int64_t j = 0; j < seen; ++j) row[j] /= sum;
    std::fill(row + seen, row + all, 0.0f);
  }

  Rotation rotation_;
  std::vector<Layer> layers_;
  std::size_t used_ = 0;
  std::vector<float> scores_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** words) {
  const int steps = count > 1 ? std::atoi(words[1]) : 40;
  const lab::Text text = lab::read_text("generated text", lab::generated_text());
  lab::Job job;
  job.name = "bench";
  job.size = 256;
  job.batch = 16;
  job.steps = 100'000;
  job.shape.layers = 4;
  job.shape.width = 128;
  lab::fit_shape(job, text);
  job.shape.vocabulary = 96;
  lab::check(job);
  const lab::Task& task = lab::task_named(job.task);

  Materialised materialised(prepare(Rope{.dims = job.shape.head_width()}));
  lab::OtherAttention other;
  other.forward = [&](TensorView out, ConstTensorView q, ConstTensorView k, ConstTensorView v,
                      const AttentionOptions&) { materialised.forward(out, q, k, v); };
  other.backward = [&](const AttentionGradients& d, ConstTensorView d_out, const AttentionInputs& inputs,
                       const AttentionOptions&) { materialised.backward(d, d_out, inputs); };
  lab::State fused = lab::begin(job), scored = lab::begin(job);
  lab::Workers fused_workers, scored_workers;
  scored_workers.activations.resize(1);
  scored_workers.activations[0].attention = &other;
  const auto tokens = static_cast<double>(job.batch * job.size);
  std::vector<double> fused_speeds, scored_speeds, ratios;
  double after_ten = 0, apart = 0;
  const auto step = [&](lab::State& state, lab::Workers& workers, double& loss) {
    const double begin = cpu_seconds();
    loss = lab::train_step(state, job, task, text, workers).loss;
    return tokens / (cpu_seconds() - begin);
  };
  const int compared = std::min(steps, 20);  // the other one only as long as it takes to know
  for (int i = 0; i < steps; ++i) {
    double loss = 0, other_loss = 0;
    const double speed = step(fused, fused_workers, loss);
    if (i < compared) {
      const double other_speed = step(scored, scored_workers, other_loss);
      apart = std::max(apart, std::abs(loss - other_loss));
      if (i > 0) {
        scored_speeds.push_back(other_speed);
        ratios.push_back(speed / other_speed);
      }
    }
    if (i > 0) fused_speeds.push_back(speed);
    if (i + 1 == compared) after_ten = held_megabytes();
  }
  std::printf("%lld parameters, 4 layers, 4 heads, width 128, 16 sequences of 256 bytes, rope, f32, one thread, %s\n",
              static_cast<long long>(lab::parameter_count(fused.network.layout)), lab::products_by());
  std::printf("attention of the library  %8.0f tokens for each second of processor time\n", median(fused_speeds));
  std::printf("scores in memory          %8.0f\n", median(scored_speeds));
  std::printf("the library's is faster by %.3f (median of neighbours)\n", median(ratios));
  double farthest = 0;
  if (steps <= compared) {
    for (std::size_t i = 0; i < fused.network.parameters.size(); ++i) {
      farthest = std::max(farthest, std::abs(static_cast<double>(fused.network.parameters[i]) -
                                             static_cast<double>(scored.network.parameters[i])));
    }
    std::printf("largest difference of their parameters after %d steps: %.2g\n", steps, farthest);
  }
  std::printf("largest difference of their losses: %.2g\n", apart);
  std::printf("memory ever held: %.1f MB after %d steps, %.1f MB after %d\n", after_ten, compared, held_megabytes(),
              steps);
  return apart < 1e-3 ? 0 : 1;
}
