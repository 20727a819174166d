// The program without MPI: one process, and a first build without further requirements.

#include <cstdlib>

#include "cli/lab/lab_ranks.h"
#include "cli/system/failure.h"

namespace posenc::cli {

LabRanks join_ranks() {
  // How Open MPI and MPICH tell a process how many there are.
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}) {
    const char* const size = std::getenv(name);
    if (size != nullptr && std::atoi(size) > 1) {
      throw Failure{
          kFilesFailed,
          "lab: this build has no MPI inside, so that every process would train the same (run ./run mpirun -n N "
          "lab … in the source tree to build it)"};
    }
  }
  return {{}, [] {}};
}

void leave_ranks() {}

}  // namespace posenc::cli
