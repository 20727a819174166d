// The definition of attention, without tiles: softmax(scale · Q Kᵀ + bias) V, one score at a time, every sum in
// double. A row of scores is stored whole, so this softmax is not an online one.

#include <cmath>
#include <limits>

#include "attention/content_terms.h"
#include "attention/reference/rows.h"
#include "terms/counted_gates/counted_gates.h"
#include "terms/distance_maps.h"
#include "terms/terms.h"

namespace posenc::attend::reference {
namespace {

using kernels::with_cache_type;
using kernels::with_type;
using terms::Score;

constexpr double kNone = -std::numeric_limits<double>::infinity();

template <class A, class B>
double dot(const A* a, std::int64_t a_step, const B* b, std::int64_t b_step, std::int64_t n) {
  double sum = 0;
  for (std::int64_t f = 0; f < n; ++f) sum += numerics::element_of(a, a_step, f) * numerics::element_of(b, b_step, f);
  return sum;
}

// (x + offset) · the vectors that the distance of query i and key j selects; x is row t of its tensor.
double dot_vectors(const VectorsByDistance& vectors, const Score& at, const HeadTensor<const void>& x,
                   std::int64_t x_head, std::int64_t t, const double* offset) {
  const ConstTensorView table = table_of(vectors);
  if (table.data == nullptr) return 0;
  double sum = 0;
  with_type(x.type, [&](auto kind) {
    const auto* const row = x.row<decltype(kind)>(at.b, x_head, t);
    terms::each_row(vectors, at, [&](std::int64_t picked) {
      for (std::int64_t f = 0; f < x.features; ++f) {
        const double element = numerics::widen(row[f * x.feature_stride]) + (offset != nullptr ? offset[f] : 0.0);
        sum += element * terms::vector_element(table, at.h, picked, f);
      }
    });
  });
  return sum;
}

// What vectors by distance add to a score, before the softcap.
double vector_score(const AttentionJob& job, const DistanceVectors& vectors, const Score& at) {
  const HeadTensor<const void>& queries = job.position_queries.data != nullptr ? job.position_queries : job.q;
  const double* const offsets =
      vectors.query_offsets.empty() ? nullptr : vectors.query_offsets.data() + at.h * queries.features;
  return job.vector_scale * (dot_vectors(vectors.for_queries, at, queries, at.h, at.i, offsets) +
                             dot_vectors(vectors.for_keys, at, job.k, at.h / job.group, at.j, nullptr));
}

// scale · q·k plus the contribution of vectors by distance. A rotated q or k has the type of sums, so the two types
// may differ.
template <class Q, class K>
double scaled_product(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  const Q* q = job.q.row<Q>(b, h, i);
  const K* k = job.k.row<K>(b, h / job.group, j);
  double sum = job.scale * dot(q, job.q.feature_stride, k, job.k.feature_stride, job.q.features);
  if (const DistanceVectors* const vectors = vectors_in(job)) {
    const terms::Tokens tokens = job.tokens();
    sum += vector_score(job, *vectors, {tokens, b, h, i, j});
  }
  return sum;
}
double scaled_product(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  return with_type(job.q.type, [&](auto q_kind) {
    return with_cache_type(
        job.k.type, [&](auto k_kind) { return scaled_product<decltype(q_kind), decltype(k_kind)>(job, b, h, i, j); });
  });
}

double score(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  double result = scaled_product(job, b, h, i, j);
  if (job.softcap > 0) result = job.softcap * std::tanh(result / job.softcap);
  if (job.bias != nullptr) {
    const terms::Tokens tokens = job.tokens();
    result += terms::element(*job.bias, {tokens, b, h, i, j});
  }
  if (job.mask.data != nullptr) result += job.mask.at(b, h, i, j);
  return result;
}

}  // namespace

double cap_slope(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
  if (!(job.softcap > 0)) return 1.0;
  const double t = std::tanh(scaled_product(job, b, h, i, j) / job.softcap);
  return 1 - t * t;
}

void score_keys(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
                std::vector<double>& scores) {
  scores.assign(job.k.sequence, 0.0);
  const KeyRange& key_range = job.key_range(b, i);
  for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
    scores[j] = job.is_hidden(b, h, i, j) ? kNone : score(job, b, h, i, j);
  }
}

std::vector<double> contextual_rows(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i) {
  const ConstTensorView& table = counted_gates_in(job)->table;
  std::vector<double> products(table.shape.back(1), 0.0);
  with_type(job.q.type, [&](auto kind) {
    const auto* const q = job.q.row<decltype(kind)>(b, h, i);
    for (std::size_t row = 0; row < products.size(); ++row) {
      for (std::int64_t f = 0; f < job.q.features; ++f) {
        products[row] += numerics::widen(q[f * job.q.feature_stride]) *
                         terms::vector_element(table, h, static_cast<std::int64_t>(row), f);
      }
    }
  });
  return products;
}

namespace {

// Adds the contribution of contextual positions to a query's scores.
void add_contextual(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
                    std::vector<double>& scores) {
  const KeyRange& key_range = job.key_range(b, i);
  const std::vector<double> products = contextual_rows(job, b, h, i);
  double count = 0;
  for (std::int64_t j = key_range.end - 1; j >= key_range.begin; --j) {
    double& x = scores[j];
    if (x == kNone) continue;  // gate 0 and weight 0
    count += terms::gate_of(x);
    const terms::ContextualPlace place = terms::contextual_place(count, std::ssize(products));
    x += (1 - place.part) * products[place.below] + place.part * products[place.above];
  }
}

}  // namespace

double weigh_keys(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::vector<double>& weights) {
  score_keys(job, b, h, i, weights);
  const KeyRange& key_range = job.key_range(b, i);
  if (counted_gates_in(job) != nullptr) add_contextual(job, b, h, i, weights);
  double largest = job.sinks != nullptr ? job.sinks[h] : kNone;
  bool is_number = largest == largest;
  for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
    const double weight = weights[j];
    if (weight > largest) largest = weight;
    if (weight != weight) is_number = false;
  }
  if (!is_number) largest = std::numeric_limits<double>::quiet_NaN();
  double sum = job.sinks != nullptr && largest != kNone ? std::exp(job.sinks[h] - largest) : 0.0;
  for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
    double& weight = weights[j];
    weight = largest == kNone ? 0.0 : std::exp(weight - largest);
    sum += weight;
  }
  if (largest == kNone) return kNone;
  for (std::int64_t j = key_range.begin; j < key_range.end; ++j) weights[j] /= sum;
  return largest + std::log(sum);
}

void attend_row(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i) {
  std::vector<double> weights;
  const double logsumexp = weigh_keys(job, b, h, i, weights);
  const KeyRange& key_range = job.key_range(b, i);
  const DistanceVectors* const vectors = vectors_in(job);
  const ConstTensorView value_table = vectors != nullptr ? table_of(vectors->for_values) : ConstTensorView{};
  const bool has_value_vectors = value_table.data != nullptr;
  const terms::Tokens tokens = job.tokens();
  std::vector<double> sums(job.v.features, 0.0);
  with_cache_type(job.v.type, [&](auto kind) {
    for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
      if (job.is_hidden(b, h, i, j)) continue;
      const double weight = weights[j];
      const auto* v = job.v.row<decltype(kind)>(b, h / job.group, j);
      for (std::size_t f = 0; f < sums.size(); ++f) {
        sums[f] += weight * numerics::element_of(v, job.v.feature_stride, static_cast<std::int64_t>(f));
      }
      if (!has_value_vectors) continue;
      terms::each_row(vectors->for_values, {tokens, b, h, i, j}, [&](std::int64_t row) {
        for (std::size_t f = 0; f < sums.size(); ++f) {
          sums[f] += weight * terms::vector_element(value_table, h, row, static_cast<std::int64_t>(f));
        }
      });
    }
  });
  for (double& sum : sums) sum *= static_cast<double>(job.value_scales.of(h / job.group));
  const auto write = [](const HeadTensor<void>& to, std::int64_t batch, std::int64_t head, std::int64_t token,
                        const std::vector<double>& values) {
    if (to.data == nullptr) return;
    with_type(to.type, [&](auto kind) {
      using T = decltype(kind);
      T* row = to.row<T>(batch, head, token);
      for (std::size_t f = 0; f < values.size(); ++f) {
        row[static_cast<std::int64_t>(f) * to.feature_stride] = numerics::narrow<T>(values[f]);
      }
    });
  };
  write(job.out, b, h, i, sums);
  write(job.weights, b, h, i, weights);
  write(job.logsumexp, b, h, i, {logsumexp});
}

void forward(const AttentionJob& job) {
  for (std::int64_t b = 0; b < job.q.batch; ++b) {
    for (std::int64_t h = 0; h < job.q.heads; ++h) {
      for (std::int64_t i = 0; i < job.q.sequence; ++i) attend_row(job, b, h, i);
    }
  }
}

}  // namespace posenc::attend::reference
