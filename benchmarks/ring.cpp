// mpirun -n 2 posenc_ring_bench [TOKENS]: attention over a sequence that two processes share, against one process with the
// whole of it; one thread each. Prints what docs/guide/scaling.md is computed from.

#include <mpi.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "posenc/attention.h"
#include "posenc/distributed.h"
#include "posenc/random.h"
#include "posenc/scheme.h"

namespace {

using namespace posenc;
constexpr std::int64_t kHeads = 8, kFeatures = 64;
constexpr Run kOneThread = {.stream = nullptr, .threads = 1};

// Processor time: a shared machine says nothing by the clock. MPI polls while it waits, so that waiting is in it.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<float> drawn(std::int64_t tokens, std::uint64_t seed) {
  Random random(seed);
  std::vector<float> values(static_cast<std::size_t>(kHeads * tokens * kFeatures));
  for (float& value : values) value = static_cast<float>(random.uniform());
  return values;
}

// The least of three, of the slowest rank.
template <class Act> double seconds_of(const Act& act) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = cpu_seconds();
    act();
    double own = cpu_seconds() - begin, all = 0;
    MPI_Allreduce(&own, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    best = std::min(best, all);
  }
  return best;
}

}  // namespace

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::int64_t tokens = count > 1 ? std::atoll(words[1]) : 16'384, own = tokens / ranks;
  const Extents shape = {1, kHeads, own, kFeatures};
  const std::vector<float> q = drawn(own, 1), k = drawn(own, 2), v = drawn(own, 3);
  std::vector<float> out(q.size());
  AttentionOptions options;
  options.causal = true;
  options.position = prepare(Rope{.dims = kFeatures});
  const Communicator world = {MPI_Comm_c2f(MPI_COMM_WORLD)};
  const double ring = seconds_of([&] {
    ring_attention(view(out.data(), shape), view(q.data(), shape), view(k.data(), shape), view(v.data(), shape),
                   options, world, kOneThread);
  });
  // The same products without messages: the rank's own block, then for every other rank half a block each way.
  const double products = seconds_of([&] {
    attention(view(out.data(), shape), view(q.data(), shape), view(k.data(), shape), view(v.data(), shape), options,
              kOneThread);
    AttentionOptions whole = options;
    whole.causal = false;
    const auto half = [&](const std::vector<float>& x) {
      ConstTensorView part = view(x.data(), shape);
      part.shape[2] = own / 2;
      return part;
    };
    for (int other = 0; other < ranks - 1; ++other) {
      const bool early = other < rank;
      ConstTensorView queries = early ? ConstTensorView(view(q.data(), shape)) : half(q);
      TensorView to = view(out.data(), shape);
      to.shape[2] = queries.shape[2];
      attention(to, queries, early ? half(k) : ConstTensorView(view(k.data(), shape)),
                early ? half(v) : ConstTensorView(view(v.data(), shape)), whole, kOneThread);
    }
  });
  // a message of a block's size to the next rank and from the last one
  std::vector<float> block(2 * k.size()), coming(block.size());
  const double message = ranks == 1 ? 0 : seconds_of([&] {
    MPI_Sendrecv(block.data(), static_cast<int>(block.size()), MPI_FLOAT, (rank + 1) % ranks, 0, coming.data(),
                 static_cast<int>(coming.size()), MPI_FLOAT, (rank + ranks - 1) % ranks, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
  });
  double alone = 0;
  if (rank == 0) {
    const Extents all = {1, kHeads, tokens, kFeatures};
    const std::vector<float> whole_q = drawn(tokens, 1), whole_k = drawn(tokens, 2), whole_v = drawn(tokens, 3);
    std::vector<float> whole_out(whole_q.size());
    alone = 1e9;
    for (int i = 0; i < 2; ++i) {
      const double begin = cpu_seconds();
      attention(view(whole_out.data(), all), view(whole_q.data(), all), view(whole_k.data(), all),
                view(whole_v.data(), all), options, kOneThread);
      alone = std::min(alone, cpu_seconds() - begin);
    }
    const double operations = 2.0 * static_cast<double>(tokens) * static_cast<double>(tokens) * kHeads * kFeatures;
    std::printf("%lld tokens, 8 heads of 64, causal, rope, f32, %d ranks of one thread\n",
                static_cast<long long>(tokens), ranks);
    std::printf("one process   %8.3f s   %.1f GFLOP/s\n", alone, operations / alone / 1e9);
    std::printf("ring          %8.3f s   efficiency %.3f\n", ring, alone / ring / ranks);
    std::printf("products only %8.3f s   messages and merging add %.1f %%\n", products, 100 * (ring / products - 1));
    if (ranks > 1) {
      const double bytes = static_cast<double>(block.size()) * sizeof(float);
      std::printf("one message   %8.4f s   %.2f GB/s\n", message, bytes / message / 1e9);
    }
    std::printf("memory of a rank: %.1f MB for its rows, %.1f MB for blocks on their way\n",
                4e-6 * static_cast<double>(4 * q.size()), 4e-6 * static_cast<double>(4 * k.size()));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
