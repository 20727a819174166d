// The gradients of attention by their definition, in double. With weights p and scores s,
//   dv_j = Σ_i p_ij dout_i,   dp_ij = dout_i · v_j,   ds_ij = p_ij (dp_ij − Σ_j p_ij dp_ij)
// and ds propagates to q, k and what position adds to the scores.

#include <algorithm>
#include <cmath>

#include "attention/content_terms.h"
#include "attention/reference/rows.h"
#include "terms/counted_gates/counted_gates.h"
#include "terms/distance_maps.h"
#include "terms/terms.h"

namespace posenc::attend::reference {
namespace {

using kernels::with_type;

double at(const HeadTensor<const void>& x, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f) {
  return with_type(x.type,
                   [&](auto kind) { return numerics::widen(x.row<decltype(kind)>(b, h, t)[f * x.feature_stride]); });
}

void set(const HeadTensor<void>& x, std::int64_t b, std::int64_t h, std::int64_t t, std::int64_t f, double value) {
  with_type(x.type, [&](auto kind) {
    using T = decltype(kind);
    x.row<T>(b, h, t)[f * x.feature_stride] = numerics::narrow<T>(value);
  });
}

// ds propagates to the vectors that a distance selects and to what they are multiplied with: q for queries, k for
// keys.
struct VectorGradient {
  const VectorsByDistance& vectors;
  double* d_vectors;               // [rows, features] of the head; null: not requested
  const double* offset = nullptr;  // what is added to x
  double* d_offset = nullptr;      // null: not requested
  ConstTensorView table = table_of(vectors);

  // ds of a score; x is row t of its tensor, and dx its gradient.
  void add(const terms::Score& score, double ds, const HeadTensor<const void>& x, std::int64_t x_head, std::int64_t t,
           double* dx) const {
    if (table.data == nullptr) return;
    terms::each_row(vectors, score, [&](std::int64_t row) {
      for (std::int64_t f = 0; f < x.features; ++f) {
        const double element = ds * terms::vector_element(table, score.h, row, f);
        dx[f] += element;
        if (d_offset != nullptr) d_offset[f] += element;
        if (d_vectors == nullptr) continue;
        d_vectors[row * x.features + f] +=
            ds * (at(x, score.b, x_head, t, f) + (offset != nullptr ? offset[f] : 0.0));
      }
    });
  }
};

double* head_of(std::vector<double>& sums, std::int64_t h, std::int64_t size) {
  return sums.empty() ? nullptr : sums.data() + h * size;
}

// Contextual positions: d_scores become the gradients of the scores before the positions were added, and what is
// multiplied with the table gets its part.
struct ContextualGradient {
  const AttentionJob& job;
  std::int64_t b, h, i;
  double* d_vectors;  // [rows, features] of the head; null: not requested

  void add(std::vector<double>& d_scores, std::vector<double>& dq) const {
    const ConstTensorView& table = counted_gates_in(job)->table;
    const KeyRange& key_range = job.key_range(b, i);
    const std::vector<double> products = contextual_rows(job, b, h, i);
    std::vector<double> scores, d_counts(d_scores.size(), 0.0), d_products(products.size(), 0.0);
    score_keys(job, b, h, i, scores);
    double count = 0;
    for (std::int64_t j = key_range.end - 1; j >= key_range.begin; --j) {
      count += terms::gate_of(scores[j]);
      const terms::ContextualPlace place = terms::contextual_place(count, std::ssize(products));
      const auto below = static_cast<std::size_t>(place.below), above = static_cast<std::size_t>(place.above);
      d_products[below] += (1 - place.part) * d_scores[j];
      d_products[above] += place.part * d_scores[j];
      if (!place.is_cut) d_counts[j] = d_scores[j] * (products[above] - products[below]);
    }
    double sum = 0;  // a gate is part of the counts of its own key and all before it
    for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
      const double gate = terms::gate_of(scores[j]);
      sum += d_counts[j];
      d_scores[j] += gate * (1 - gate) * sum;
    }
    const std::int64_t features = job.q.features;
    for (std::size_t row = 0; row < products.size(); ++row) {
      if (d_products[row] == 0) continue;
      for (std::int64_t f = 0; f < features; ++f) {
        const auto at_row = static_cast<std::int64_t>(row);
        dq[f] += d_products[row] * terms::vector_element(table, h, at_row, f);
        if (d_vectors != nullptr) d_vectors[at_row * features + f] += d_products[row] * at(job.q, b, h, i, f);
      }
    }
  }
};

// Whether the caller's logsumexp of a query is this one, up to errors of the engine that computed it.
bool is_logsumexp_of(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, double logsumexp) {
  const double given = with_type(
      job.logsumexp.type, [&](auto kind) { return numerics::widen(*job.logsumexp.row<decltype(kind)>(b, h, i)); });
  const double error =
      (size_of(job.q.type) == 2 ? 0x1p-6 : 0x1p-10) * std::max(1.0, std::min(std::fabs(given), std::fabs(logsumexp)));
  return !(std::fabs(given - logsumexp) > error);  // −inf and −inf: no visible key
}

// The contribution of head h; dk and dv are [batch, keys, features] of its key head.
void backward_head(BackwardJob& job, std::int64_t h, double* dk, double* dv) {
  const AttentionJob& forward = job.forward;
  const std::int64_t keys = forward.k.sequence, features = forward.q.features, value_features = forward.v.features;
  const std::int64_t g = h / forward.group;
  const terms::Tokens tokens = forward.tokens();
  const DistanceVectors* const vectors = vectors_in(forward);
  const bool has_own_queries = forward.position_queries.data != nullptr;
  const HeadTensor<const void>& relative = has_own_queries ? forward.position_queries : forward.q;
  const ConstTensorView value_table = vectors != nullptr ? table_of(vectors->for_values) : ConstTensorView{};
  double* const d_values = head_of(job.value_vectors, h, job.value_rows * value_features);
  std::vector<double> weights, d_scores, dp(keys), dq(features);
  std::vector<double> d_relative(static_cast<std::size_t>(has_own_queries ? relative.features : 0));
  for (std::int64_t b = 0; b < forward.q.batch; ++b) {
    for (std::int64_t i = 0; i < forward.q.sequence; ++i) {
      const double logsumexp = weigh_keys(forward, b, h, i, weights);
      if (!job.has_other_keys.empty() && !is_logsumexp_of(forward, b, h, i, logsumexp)) {
        job.has_other_keys[g] = 1;
      }
      const KeyRange& key_range = forward.key_range(b, i);
      double mean = 0;
      for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
        dp[j] = 0;
        if (forward.is_hidden(b, h, i, j)) continue;
        for (std::int64_t f = 0; f < value_features; ++f) {
          const double d_out = at(job.d_out, b, h, i, f);
          dp[j] += d_out * at(forward.v, b, g, j, f);
          dv[(b * keys + j) * value_features + f] += weights[j] * d_out;
        }
        if (value_table.data != nullptr) {
          terms::each_row(vectors->for_values, {tokens, b, h, i, j}, [&](std::int64_t row) {
            for (std::int64_t f = 0; f < value_features; ++f) {
              const double d_out = at(job.d_out, b, h, i, f);
              dp[j] += d_out * terms::vector_element(value_table, h, row, f);
              if (d_values != nullptr) d_values[row * value_features + f] += weights[j] * d_out;
            }
          });
        }
        mean += weights[j] * dp[j];
      }
      std::fill(dq.begin(), dq.end(), 0.0);
      std::fill(d_relative.begin(), d_relative.end(), 0.0);
      d_scores.assign(weights.size(), 0.0);
      for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
        if (!forward.is_hidden(b, h, i, j)) d_scores[j] = weights[j] * (dp[j] - mean);
      }
      if (counted_gates_in(forward) != nullptr) {
        ContextualGradient{forward, b, h, i, head_of(job.query_vectors, h, job.query_rows * features)}.add(d_scores,
                                                                                                           dq);
      }
      for (std::int64_t j = key_range.begin; j < key_range.end; ++j) {
        if (forward.is_hidden(b, h, i, j)) continue;
        const double d_score = d_scores[j];
        const double ds = d_score * cap_slope(forward, b, h, i, j);  // of the score before the softcap
        double* const dk_row = dk + (b * keys + j) * features;
        for (std::int64_t f = 0; f < features; ++f) {
          dq[f] += forward.scale * ds * at(forward.k, b, g, j, f);
          dk_row[f] += forward.scale * ds * at(forward.q, b, h, i, f);
        }
        if (double* const sums = head_of(job.parameters, h, job.head_parameters)) {
          terms::add_gradient(*forward.bias, {tokens, b, h, i, j}, d_score, sums);
        }
        if (double* const d_sums = job.gate_gradient(b, h)) {
          d_sums[key_range.diagonal] += d_score;
          d_sums[j] -= d_score;
        }
        if (vectors != nullptr) {
          const double scaled = forward.vector_scale * ds;
          const bool has_offset = !vectors->query_offsets.empty();
          VectorGradient{vectors->for_queries, head_of(job.query_vectors, h, job.query_rows * relative.features),
                         has_offset ? vectors->query_offsets.data() + h * relative.features : nullptr,
                         head_of(job.query_offsets, h, relative.features)}
              .add({tokens, b, h, i, j}, scaled, relative, h, i, has_own_queries ? d_relative.data() : dq.data());
          VectorGradient{vectors->for_keys, head_of(job.key_vectors, h, job.key_rows * features)}.add(
              {tokens, b, h, i, j}, scaled, forward.k, g, j, dk_row);
        }
      }
      if (has_own_queries && job.d_position_queries.data != nullptr) {
        for (std::int64_t f = 0; f < relative.features; ++f) {
          set(job.d_position_queries, b, h, i, f, d_relative[f]);
        }
      }
      if (job.dq.data == nullptr) continue;
      for (std::int64_t f = 0; f < features; ++f) set(job.dq, b, h, i, f, dq[f]);
    }
  }
}

}  // namespace

void backward_group(BackwardJob& job, std::int64_t g) {
  const AttentionJob& forward = job.forward;
  const std::int64_t tokens = forward.k.batch * forward.k.sequence;
  std::vector<double> dk(tokens * forward.k.features, 0.0);
  std::vector<double> dv(tokens * forward.v.features, 0.0);
  for (std::int64_t h = g * forward.group; h < (g + 1) * forward.group; ++h) {
    backward_head(job, h, dk.data(), dv.data());
  }
  const auto write = [&](const HeadTensor<void>& out, const std::vector<double>& sums) {
    if (out.data == nullptr) return;
    std::size_t next = 0;
    for (std::int64_t b = 0; b < out.batch; ++b) {
      for (std::int64_t j = 0; j < out.sequence; ++j) {
        for (std::int64_t f = 0; f < out.features; ++f) set(out, b, g, j, f, sums[next++]);
      }
    }
  };
  write(job.dk, dk);
  write(job.dv, dv);
}

void backward(BackwardJob& job) {
  for (std::int64_t g = 0; g < job.forward.k.heads; ++g) backward_group(job, g);
}

}  // namespace posenc::attend::reference
