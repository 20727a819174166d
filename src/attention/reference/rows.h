#pragma once

#include "attention/job.h"

namespace posenc::attend::reference {

/// The scores of the keys that query i attends to, without contextual positions: −inf where masked, 0 past either
/// end.
void score_keys(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::vector<double>& scores);

/// For a job with contextual positions: the products of query i with the rows of the table.
std::vector<double> contextual_rows(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i);

/// Query i of head h in sequence b: scores, weights and the weighted sum, in double, one element at a time.
void attend_row(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i);

/// The derivative of the softcap at the score of query i and key j; 1 without one.
double cap_slope(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j);

/// The softmax weights of query i, 0 for masked keys. Returns the log of the sum of e^score, or −inf if no key is
/// visible.
double weigh_keys(const AttentionJob& job, std::int64_t b, std::int64_t h, std::int64_t i,
                  std::vector<double>& weights);

/// The gradients of all heads that share key head g. Different g write to different elements.
void backward_group(BackwardJob& job, std::int64_t g);

void forward(const AttentionJob& job);
void backward(BackwardJob& job);

}  // namespace posenc::attend::reference
