#pragma once

#include <chrono>
#include <string_view>

namespace posenc::cli {

/// A bar on stderr for work that takes longer than a second; nothing at all where stderr is no terminal.
class Progress {
 public:
  /// `total`: bytes to come, or as many of `things`. `wanted`: false keeps it silent.
  Progress(double total, bool wanted, std::string_view things = "");
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();

  void advance(double count);

 private:
  using Clock = std::chrono::steady_clock;

  double total_;
  double done_ = 0;
  bool is_wanted_;
  std::string_view things_;
  bool is_shown_ = false;
  Clock::time_point begin_ = Clock::now();
  Clock::time_point next_ = begin_ + std::chrono::seconds(1);
};

}  // namespace posenc::cli
