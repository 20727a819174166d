#pragma once

#include "cli/lab/lab_folder.h"
#include "cli/lab/lab_ranks.h"

namespace posenc::cli {

struct LabEffort {
  int threads = 1;  ///< per process
  bool quiet = false;
  LabRanks processes = {};
};

/// Trains and evaluates every job of a run that has no result yet, each from its last checkpoint. On a signal, writes
/// a checkpoint of the current model. Several processes train one job together, and divide several among themselves,
/// the longest first.
/// Throws: Failure.
void run_jobs(const LabFolder& folder, const LabRun& run, const lab::Text& text, const LabEffort& effort);

/// Assigns the jobs to the given number of processes: the longest first, each to the process with the least work. A
/// job comes after its parent, in the same process.
std::vector<std::vector<lab::Job>> shared_out(const std::vector<lab::Job>& jobs, int processes);

}  // namespace posenc::cli
