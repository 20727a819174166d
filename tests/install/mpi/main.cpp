// The last token of a sequence that two ranks share attends to equal keys, so its output is the mean of the values, 0
// … 7.
#include <mpi.h>
#include <posenc/distributed.h>

#include <cstdio>
#include <vector>

int main(int count, char** words) {
  MPI_Init(&count, &words);
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const std::vector<std::int64_t> positions = posenc::zigzag_positions(8, rank, ranks);
  const auto rows = static_cast<std::int64_t>(positions.size());
  const posenc::Extents shape = {1, 1, rows, 1};
  std::vector<float> q(positions.size(), 1.0f), k(q), v, out(q.size());
  for (const std::int64_t position : positions) v.push_back(static_cast<float>(position));
  posenc::AttentionOptions options;
  options.causal = true;
  posenc::ring_attention(posenc::view(out.data(), shape), posenc::view(q.data(), shape),
                         posenc::view(k.data(), shape), posenc::view(v.data(), shape), options,
                         {MPI_Comm_c2f(MPI_COMM_WORLD)});
  if (rank == 0)
    std::printf("%d ranks, token %d: %.3f\n", ranks, static_cast<int>(positions.back()),
                static_cast<double>(out.back()));
  MPI_Finalize();
}
