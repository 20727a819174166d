#pragma once

#include <string>
#include <vector>

#include "lab/claims.h"
#include "posenc/figures.h"

namespace posenc::cli {

/// A figure of a report, with a caption.
struct LabFigure {
  std::string name;  ///< of its file: perplexity-by-length
  figures::Figure figure;
  std::string caption;
};

/// The figures for which the results have data: perplexity by length, loss by position, copying, RoPE's extensions.
std::vector<LabFigure> lab_figures(const std::vector<lab::Outcome>& outcomes);

/// One row per scheme and task: the mean over seeds for each size.
struct LabRow {
  std::string task, scheme, extension;
  std::int64_t seeds = 0, parameters = 0;
  bool is_exact = false;
  std::vector<std::int64_t> sizes;
  std::vector<double> means, least, most;  ///< perplexity (of the mean log), or fraction of exact matches
};
std::vector<LabRow> lab_rows(const std::vector<lab::Outcome>& outcomes);

}  // namespace posenc::cli
