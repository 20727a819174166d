#pragma once

#include "cli/lab/lab_folder.h"

namespace posenc::cli {

struct LabEffort {
  int threads = 1;
  bool quiet = false;
};

/// Trains and evaluates every job of a run that has no result yet, each from its last checkpoint. On a signal, writes
/// a checkpoint of the current model.
/// Throws: Failure.
void run_jobs(const LabFolder& folder, const LabRun& run, const lab::Text& text, const LabEffort& effort);

}  // namespace posenc::cli
