#pragma once

#include "cli/lab/lab_folder.h"

namespace posenc::cli {

struct LabEffort {
  int threads = 1;
  bool quiet = false;
};

/// Trains and evaluates every job of a run that has no result yet, each from its last checkpoint. A signal leaves a
/// checkpoint of the model at hand. Throws: Failure.
void run_jobs(const LabFolder& folder, const LabRun& run, const lab::Text& text, const LabEffort& effort);

}  // namespace posenc::cli
