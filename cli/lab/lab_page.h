#pragma once

#include <string>
#include <vector>

#include "cli/lab/lab_figures.h"
#include "cli/lab/lab_folder.h"

namespace posenc::cli {

/// The contents of a run's page.
struct LabPage {
  const LabRun& run;
  const std::vector<lab::Outcome>& outcomes;
  const std::vector<lab::Verdict>& verdicts;
  const std::vector<LabFigure>& figures;
  std::vector<std::string> svgs;  ///< one per figure; empty: gnuplot is not installed
};

/// One self-contained file, for wide screens, phones, dark mode and paper.
std::string lab_page(const LabPage& page);

/// "1.72 [1.59, 1.80]", or without an interval if there is one seed.
std::string shown_estimate(const lab::Verdict& verdict);

}  // namespace posenc::cli
