#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/job.h"

namespace posenc::lab {

/// Models that are trained one after another, so that the claims can be judged.
struct Preset {
  std::string_view name;
  std::string_view summary;
};
const std::vector<Preset>& presets();

/// The jobs of a preset. Throws: Error for an unknown name, with a suggestion.
std::vector<Job> jobs_of(std::string_view preset, const Text& text);

/// How long a job takes, relative to others: tokens times parameters, about.
double work_of(const Job& job);

/// About how many seconds these jobs take on so many threads of this machine: some steps of the largest are taken now.
double estimated_seconds(const std::vector<Job>& jobs, const Text& text, int threads);

}  // namespace posenc::lab
