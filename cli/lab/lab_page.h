#pragma once

#include <string>
#include <vector>

#include "cli/lab/lab_figures.h"
#include "cli/lab/lab_folder.h"

namespace posenc::cli {

/// What the page of a run is made of.
struct LabPage {
  const LabRun& run;
  const std::vector<lab::Outcome>& outcomes;
  const std::vector<lab::Verdict>& verdicts;
  const std::vector<LabFigure>& figures;
  std::vector<std::string> svgs;  ///< one for each figure; empty: there is no gnuplot
};

/// One file that needs no other, for wide screens, phones, dark rooms and paper.
std::string lab_page(const LabPage& page);

/// "1.72 [1.59, 1.80]", or without an interval where there is one seed.
std::string shown_estimate(const lab::Verdict& verdict);

}  // namespace posenc::cli
