// ring_attention against attention of the whole sequence, which every rank computes itself: outputs and gradients,
// for every kind of position. Run by mpirun -n 1, 2 and 4.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "attention/option_values.h"
#include "held_memory.h"
#include "posenc/attention.h"
#include "posenc/distributed.h"
#include "posenc/error.h"
#include "posenc/random.h"
#include "posenc/scheme.h"

namespace posenc::ring_test {
namespace {

constexpr std::int64_t kBatch = 2, kHeads = 4, kKeyHeads = 2, kLength = 64, kFeatures = 16;

Communicator world() { return {MPI_Comm_c2f(MPI_COMM_WORLD)}; }
int rank() {
  int number = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &number);
  return number;
}
int ranks() {
  int count = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &count);
  return count;
}

template <class T> struct Whole { std::vector<T> q, k, v, out, logs, d_out, d_q, d_k, d_v; };

template <class T> std::vector<T> drawn(std::int64_t heads, std::uint64_t seed) {
  Random random(seed);
  std::vector<T> values(static_cast<std::size_t>(kBatch * heads * kLength * kFeatures));
  for (T& value : values) value = static_cast<T>(random.uniform());
  return values;
}

// The rank's rows of [batch, heads, length, features].
template <class T> std::vector<T> shard(const std::vector<T>& whole, std::int64_t heads, std::int64_t features) {
  std::vector<T> own;
  for (std::int64_t head = 0; head < kBatch * heads; ++head) {
    for (const std::int64_t p : zigzag_positions(kLength, rank(), ranks())) {
      const T* const row = whole.data() + (head * kLength + p) * features;
      own.insert(own.end(), row, row + features);
    }
  }
  return own;
}

template <class T> double largest_apart(const std::vector<T>& one, const std::vector<T>& other) {
  double apart = 0;
  EXPECT_EQ(one.size(), other.size());
  for (std::size_t i = 0; i < one.size(); ++i) {
    apart = std::max(apart, std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i])));
  }
  return apart;
}

struct PositionCase {
  std::string name;
  Form form;
  Extents parameters = {};
};

std::vector<PositionCase> cases() {
  static std::vector<double> table(32 * kHeads);
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = std::sin(static_cast<double>(i));
  Kerple kerple;
  kerple.amplitudes = {0.5, 1, 1.5, 2};
  kerple.rates = {1, 0.5, 2, 0.1};
  return {{"none", Nothing{}},
          {"rope", prepare(Rope{.dims = kFeatures})},
          {"alibi", prepare(Alibi{.heads = kHeads})},
          {"t5",
           prepare(T5{.heads = kHeads, .bidirectional = false},
                   {.weights = view(std::as_const(table).data(), {32, kHeads})}),
           {32, kHeads}},
          {"kerple", prepare(kerple, {.length = kLength}), {kLength, kHeads}}};
}

template <class T> void compare_all(double bound) {
  const std::int64_t rows = kLength / ranks();
  for (const PositionCase& one : cases()) {
    for (const bool causal : {true, false}) {
      SCOPED_TRACE(one.name + (causal ? ", causal" : ""));
      Whole<T> whole{drawn<T>(kHeads, 1), drawn<T>(kKeyHeads, 2), drawn<T>(kKeyHeads, 3), drawn<T>(kHeads, 0),   {},
                     drawn<T>(kHeads, 4), drawn<T>(kHeads, 0),    drawn<T>(kKeyHeads, 0), drawn<T>(kKeyHeads, 0)};
      whole.logs.resize(kBatch * kHeads * kLength);
      const Extents q_shape = {kBatch, kHeads, kLength, kFeatures}, k_shape = {kBatch, kKeyHeads, kLength, kFeatures};
      AttentionOptions options;
      options.position = one.form;
      options.causal = causal;
      AttentionOptions first = options;
      first.logsumexp = view(whole.logs.data(), {kBatch, kHeads, kLength});
      attention(view(whole.out.data(), q_shape), view(whole.q.data(), q_shape), view(whole.k.data(), k_shape),
                view(whole.v.data(), k_shape), first);
      std::vector<double> d_whole(one.parameters.rank == 0 ? 0 : static_cast<std::size_t>(count_of(one.parameters)),
                                  0.0);
      std::vector<double> d_own = d_whole;
      AttentionGradients to;
      to.q = view(whole.d_q.data(), q_shape);
      to.k = view(whole.d_k.data(), k_shape);
      to.v = view(whole.d_v.data(), k_shape);
      if (!d_whole.empty()) to.parameters = view(d_whole.data(), one.parameters);
      attention_backward(
          to, view(whole.d_out.data(), q_shape),
          {view(whole.q.data(), q_shape), view(whole.k.data(), k_shape), view(whole.v.data(), k_shape)}, options);

      const Extents own_q = {kBatch, kHeads, rows, kFeatures}, own_k = {kBatch, kKeyHeads, rows, kFeatures};
      const std::vector<T> q = shard(whole.q, kHeads, kFeatures), k = shard(whole.k, kKeyHeads, kFeatures),
                           v = shard(whole.v, kKeyHeads, kFeatures);
      const std::vector<T> d_out = shard(whole.d_out, kHeads, kFeatures);
      std::vector<T> out(q.size()), logs(static_cast<std::size_t>(kBatch * kHeads * rows)), d_q(q.size()),
          d_k(k.size()), d_v(v.size());
      AttentionOptions ring = options;
      ring.logsumexp = view(logs.data(), {kBatch, kHeads, rows});
      ring_attention(view(out.data(), own_q), view(q.data(), own_q), view(k.data(), own_k), view(v.data(), own_k),
                     ring, world());
      EXPECT_LT(largest_apart(out, shard(whole.out, kHeads, kFeatures)), bound);
      EXPECT_LT(largest_apart(logs, shard(whole.logs, kHeads, 1)), 4 * bound);

      // gradients of a block by the logsumexp of all are float32's
      if (std::is_same_v<T, double>) continue;
      AttentionGradients own;
      own.q = view(d_q.data(), own_q);
      own.k = view(d_k.data(), own_k);
      own.v = view(d_v.data(), own_k);
      if (!d_own.empty()) own.parameters = view(d_own.data(), one.parameters);
      AttentionInputs inputs{view(q.data(), own_q), view(k.data(), own_k), view(v.data(), own_k)};
      inputs.out = view(std::as_const(out).data(), own_q);
      inputs.logsumexp = view(std::as_const(logs).data(), {kBatch, kHeads, rows});
      ring_attention_backward(own, view(d_out.data(), own_q), inputs, options, world());
      // gradients are sums over up to 64 tokens and two heads of terms of order 1
      EXPECT_LT(largest_apart(d_q, shard(whole.d_q, kHeads, kFeatures)), 8 * bound);
      EXPECT_LT(largest_apart(d_k, shard(whole.d_k, kKeyHeads, kFeatures)), 16 * bound);
      EXPECT_LT(largest_apart(d_v, shard(whole.d_v, kKeyHeads, kFeatures)), 16 * bound);
      EXPECT_LT(largest_apart(d_own, d_whole), 256 * bound);

      // the same bits with another number of threads
      std::vector<T> again(out.size());
      ring_attention(view(again.data(), own_q), view(q.data(), own_q), view(k.data(), own_k), view(v.data(), own_k),
                     options, world(), {.threads = 3});
      EXPECT_EQ(std::memcmp(again.data(), out.data(), out.size() * sizeof(T)), 0);
    }
  }
}

// |v| ≤ 1: attention's own bound is 2e-6, here once for each rank and once for what it is compared with.
TEST(Ring, EqualsAttentionInFloat) { compare_all<float>(2e-6 * (ranks() + 1)); }
TEST(Ring, EqualsAttentionInDouble) { compare_all<double>(1e-13 * (ranks() + 1)); }

TEST(Ring, SharesOutEqualWork) {
  std::vector<std::int64_t> work;
  std::vector<bool> seen(kLength, false);
  for (int r = 0; r < 4; ++r) {
    std::int64_t pairs = 0;
    for (const std::int64_t p : zigzag_positions(kLength, r, 4)) {
      pairs += p + 1;
      EXPECT_FALSE(seen[static_cast<std::size_t>(p)]);
      seen[static_cast<std::size_t>(p)] = true;
    }
    work.push_back(pairs);
  }
  for (const std::int64_t pairs : work) EXPECT_EQ(pairs, work.front());
  EXPECT_THROW(zigzag_positions(63, 0, 2), Error);
  EXPECT_THROW(zigzag_positions(64, 2, 2), Error);
}

// What one rank of `size` takes for a sequence of so many tokens: its rows of q, k, v, out and their gradients, and all that
// the two passes allocate.
std::int64_t memory_of_a_rank(std::int64_t tokens, MPI_Comm communicator) {
  int size = 1;
  MPI_Comm_size(communicator, &size);
  const Extents shape = {1, 4, tokens / size, 16};
  const auto count = static_cast<std::size_t>(count_of(shape));
  const std::int64_t before = tests::held;  // what MPI takes for itself is not counted
  tests::most_held = before;
  const std::vector<float> q(count, 0.1f), k(count, 0.2f), v(count, 0.3f), d_out(count, 0.4f);
  std::vector<float> out(count), d_q(count), d_k(count), d_v(count), logs(count / 16);
  const Communicator ring = {MPI_Comm_c2f(communicator)};
  AttentionOptions options;
  options.causal = true;
  options.position = prepare(Rope{.dims = 16});
  options.logsumexp = view(logs.data(), {1, 4, tokens / size});
  ring_attention(view(out.data(), shape), view(q.data(), shape), view(k.data(), shape), view(v.data(), shape),
                 options, ring, {.threads = 1});
  options.logsumexp = {};
  AttentionGradients gradients;
  gradients.q = view(d_q.data(), shape);
  gradients.k = view(d_k.data(), shape);
  gradients.v = view(d_v.data(), shape);
  AttentionInputs inputs{view(q.data(), shape), view(k.data(), shape), view(v.data(), shape)};
  inputs.out = view(std::as_const(out).data(), shape);
  inputs.logsumexp = view(std::as_const(logs).data(), {1, 4, tokens / size});
  ring_attention_backward(gradients, view(d_out.data(), shape), inputs, options, ring, {.threads = 1});
  return tests::most_held - before;
}

TEST(Ring, MemoryOfARankFallsWithTheirNumber) {
  constexpr std::int64_t kTokens = 2048;
  const auto alone = static_cast<double>(memory_of_a_rank(kTokens, MPI_COMM_SELF));
  for (const int size : {2, 4}) {
    if (size > ranks()) break;
    MPI_Comm some = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank() / size, rank(), &some);
    const auto shared = static_cast<double>(memory_of_a_rank(kTokens, some));
    MPI_Comm_free(&some);
    // Blocks of others are met by half of the rows, so that it falls a little faster; a few kilobytes stay.
    EXPECT_LT(shared / alone, 1.02 / size) << size << " ranks: " << shared << " bytes, alone " << alone;
    EXPECT_GT(shared / alone, 0.7 / size) << size << " ranks: " << shared << " bytes, alone " << alone;
    if (rank() == 0) printf("%d ranks: %.4f of the memory of one\n", size, shared / alone);
  }
}

TEST(Ring, RefusesOtherOptions) {
  std::vector<float> x(static_cast<std::size_t>(kLength * kFeatures));
  const auto all = view(x.data(), {1, 1, kLength, kFeatures});
  int refused = 0;
  AttentionOptions::fields([&](const std::string& name, auto member, std::string_view) {
    AttentionOptions options;
    tests::give(options.*member);
    const std::set<std::string> taken = {"position", "causal", "scale", "softcap", "logsumexp"};
    if (taken.contains(name)) return;
    try {
      ring_attention(all, all, all, all, options, world());
      ADD_FAILURE() << name << " is not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "ring_attention: the ring does not support the option " + name);
      ++refused;
    }
  });
  EXPECT_GE(refused, 22);
  AttentionOptions options;
  AttentionInputs inputs{all, all, all, all, view(x.data(), {1, 1, kLength})};
  AttentionGradients gradients;
  gradients.q = view(x.data() + 1, {1});
  EXPECT_THROW(ring_attention_backward(gradients, all, inputs, {}, world()), Error);
  EXPECT_THROW(ring_attention(all, all, all, view(x.data(), {1, 1, kLength / 2, kFeatures}), {}, world()), Error);
}

}  // namespace
}  // namespace posenc::ring_test

int main(int count, char** words) {
  MPI_Init(&count, &words);
  testing::InitGoogleTest(&count, words);
  const int failed = RUN_ALL_TESTS();
  MPI_Finalize();
  return failed;
}
