#pragma once

#include "cli/lab/lab_folder.h"

namespace posenc::cli {

/// Evaluates the results of a run and writes summary.json, report.html and the SVG of every figure to its folder.
/// Without gnuplot there are no figures. Returns what the program prints: the verdicts, and the path of the report.
std::string write_lab_report(const LabFolder& folder, const LabRun& run, int columns, bool colour);

}  // namespace posenc::cli
