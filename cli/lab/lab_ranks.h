#pragma once

#include <functional>
#include <string>

#include "lab/train.h"

namespace posenc::cli {

/// The processes that mpirun started, or this one alone. Two sources define it: cli/without_mpi.cpp, and cli/with_mpi.cpp for the
/// program that is linked to MPI.
struct LabRanks {
  lab::Ranks ranks = {};               ///< how they train one model together
  std::function<void()> wait_for_all;  ///< until every rank has come here
};

/// Joins them. Called once.
/// Throws: Failure where mpirun started a program that was built without MPI.
LabRanks join_ranks();
/// Leaves them, where all have come to an end; not called where one of them failed.
void leave_ranks();

}  // namespace posenc::cli
