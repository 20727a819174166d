// The processes that mpirun started.

#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <thread>

#include "cli/lab/lab_ranks.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"

namespace posenc::cli {
namespace {

// How long the others may take for one step once a signal has arrived. If a rank dies, mpirun ends all: it sends
// SIGTERM, and a second later SIGKILL. The checkpoint is written between the two.
constexpr std::chrono::milliseconds kPatience{200};

// Waits for a message that may never arrive, because another rank died.
void wait_for(MPI_Request& request) {
  int is_done = 0;
  int rounds = 0;
  while (true) {
    MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
    if (is_done != 0) return;
    if (++rounds < 1000) continue;
    if (rounds % 100 == 0) {
      try {
        stop_if_signalled();
      } catch (...) {
        const auto end = std::chrono::steady_clock::now() + kPatience;
        while (is_done == 0 && std::chrono::steady_clock::now() < end)
          MPI_Test(&request, &is_done, MPI_STATUS_IGNORE);
        if (is_done != 0) return;
        throw;
      }
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

void gather_shards(std::span<float> all, std::int64_t shards, std::int64_t each) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  std::vector<int> counts, starts;
  for (int rank = 0; rank < size; ++rank) {
    const lab::ShardRange range = lab::shards_of({rank, size, {}, {}}, shards);
    counts.push_back(static_cast<int>((range.last - range.first) * each));
    starts.push_back(static_cast<int>(range.first * each));
  }
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallgatherv(MPI_IN_PLACE, 0, MPI_FLOAT, all.data(), counts.data(), starts.data(), MPI_FLOAT, MPI_COMM_WORLD,
                  &request);
  wait_for(request);
}

bool is_any(bool own) {
  int mine = own ? 1 : 0, all = 0;
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Iallreduce(&mine, &all, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD, &request);
  wait_for(request);
  return all != 0;
}

}  // namespace

LabRanks join_ranks() {
  MPI_Init(nullptr, nullptr);
  catch_signals();  // MPI may have installed its own
  LabRanks joined;
  MPI_Comm_rank(MPI_COMM_WORLD, &joined.ranks.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &joined.ranks.size);
  joined.ranks.gather = gather_shards;
  joined.ranks.is_any = is_any;
  joined.wait_for_all = [] { is_any(false); };
  return joined;
}

void leave_ranks() { MPI_Finalize(); }

}  // namespace posenc::cli
