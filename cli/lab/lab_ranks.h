#pragma once

#include <functional>
#include <string>

#include "lab/train.h"

namespace posenc::cli {

/// The processes that mpirun started, or only this one. Defined in cli/without_mpi.cpp, and in cli/with_mpi.cpp for
/// the program linked with MPI.
struct LabRanks {
  lab::Ranks ranks = {};               ///< how they train one model together
  std::function<void()> wait_for_all;  ///< until every rank has called it
};

/// Joins them. Called once.
/// Throws: Failure if mpirun started a program that was built without MPI.
LabRanks join_ranks();
/// Leaves them once all have finished; not called if one of them failed.
void leave_ranks();

}  // namespace posenc::cli
