#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/job.h"

namespace posenc::lab {

/// A set of models, trained one after another, from which the claims are judged.
struct Preset {
  std::string_view name;
  std::string_view summary;
};
const std::vector<Preset>& presets();

/// The jobs of a preset. Throws: Error for an unknown name, with a suggestion.
std::vector<Job> jobs_of(std::string_view preset, const Text& text);

/// The approximate cost of a job: tokens times parameters.
double work_of(const Job& job);

/// The approximate time for these jobs with this number of threads, measured by running a few steps of the largest.
double estimated_seconds(const std::vector<Job>& jobs, const Text& text, int threads);

}  // namespace posenc::lab
