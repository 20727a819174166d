#pragma once

#include <cstddef>
#include <vector>

#include "kernels/element.h"
#include "terms/all.h"

namespace posenc::kernels {

/// Adds the gradients of a bias's parameters to the job's sums, in the order of the scores. Heads that share parameters
/// are summed here; otherwise for_heads(count, work) calls work(begin, end) for all heads, on any threads.
template <class ForHeads> void add_bias_gradients(const BiasBackwardJob& job, const ForHeads& for_heads) {
  const HeadTensor<const void>& gradient = job.gradient;
  const std::int64_t heads = job.form->heads;
  const terms::TokenPlaces places{job.queries, job.keys, false};
  const terms::Tokens tokens{places};
  const auto d_score = [&](auto kind, const terms::Score& at) {
    return numerics::widen(gradient.row<decltype(kind)>(at.b, at.h, at.i)[at.j * gradient.feature_stride]);
  };
  // Calls visit(at) for the scores of head h.
  const auto each_score = [&](std::int64_t h, const auto& visit) {
    for (std::int64_t b = 0; b < gradient.batch; ++b) {
      for (std::int64_t i = 0; i < gradient.sequence; ++i) {
        for (std::int64_t j = 0; j < gradient.features; ++j) visit(terms::Score{tokens, b, h, i, j});
      }
    }
  };
  terms::with_term(*job.form, [&](const auto& source, auto term) {
    with_type(gradient.type, [&](auto kind) {
      if constexpr (requires(terms::Score at, double* sums) { term.add_gradients(source, at, sums, sums); }) {
        std::vector<double> d_scores(heads);
        each_score(0, [&](terms::Score at) {
          for (at.h = 0; at.h < heads; ++at.h) d_scores[at.h] = d_score(kind, at);
          term.add_gradients(source, at, d_scores.data(), job.sums);
        });
      } else {
        const std::int64_t in_head = term.head_parameters(source, heads);
        std::vector<double> sums(heads * in_head);
        for_heads(heads, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t h = begin; h < end; ++h) {
            each_score(h, [&](const terms::Score& at) {
              term.add_gradient(source, heads, at, d_score(kind, at), sums.data() + h * in_head);
            });
          }
        });
        for (std::int64_t at = 0; at < count_of(term.parameters(source, heads)); ++at) {
          job.sums[at] += term.gradient(source, heads, sums.data(), in_head, at);
        }
      }
    });
  });
}

}  // namespace posenc::kernels
