#pragma once

#include <chrono>
#include <string>

#include "lab/train.h"

namespace posenc::cli {

/// Shows the progress of a run on stderr: a bar on a terminal; otherwise a line when a model is done and every ten
/// seconds.
class LabProgress {
 public:
  /// `total` and the work passed below are in the same, arbitrary unit.
  LabProgress(double total, int jobs, bool quiet);
  LabProgress(const LabProgress&) = delete;
  LabProgress& operator=(const LabProgress&) = delete;
  ~LabProgress();

  /// Work done by an earlier run.
  void skip(double work);
  void step(const lab::Job& job, int number, const lab::Metric& metric, double work);
  /// Prints a permanent line.
  void done(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  std::string time_left() const;
  void clear();

  double total_, done_ = 0, before_ = 0;
  int jobs_;
  bool is_quiet_, is_terminal_, is_drawn_ = false;
  double speed_ = 0;  // tokens per second, smoothed
  Clock::time_point begin_ = Clock::now(), next_;
};

}  // namespace posenc::cli
