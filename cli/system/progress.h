#pragma once

#include <chrono>
#include <string_view>

namespace posenc::cli {

/// A bar on stderr for work that takes longer than a second; nothing if stderr is not a terminal.
class Progress {
 public:
  /// `total`: the number of bytes, or of `things`. `wanted`: false disables it.
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
