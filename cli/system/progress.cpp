#include "cli/system/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "cli/arrays/numbers.h"

namespace posenc::cli {
namespace {

constexpr int kBarColumns = 30;
constexpr std::chrono::milliseconds kBetweenUpdates{100};

// Continues if the terminal is gone.
void draw(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

Progress::Progress(double total, bool wanted, std::string_view things)
    : total_(total), is_wanted_(wanted && isatty(STDERR_FILENO) == 1), things_(things) {}

Progress::~Progress() {
  if (is_shown_) draw("\r\033[K");
}

void Progress::advance(double count) {
  done_ += count;
  if (!is_wanted_) return;
  const Clock::time_point now = Clock::now();
  if (now < next_) return;
  next_ = now + kBetweenUpdates;
  is_shown_ = true;

  const double seconds = std::chrono::duration<double>(now - begin_).count();
  const double share = total_ > 0 ? std::min(done_ / total_, 1.0) : 1.0;
  const int filled = static_cast<int>(share * kBarColumns);
  std::string bar;
  for (int i = 0; i < kBarColumns; ++i) bar += i < filled ? "█" : "░";
  const double left = share > 0 ? seconds * (1 - share) / share : 0;
  const std::string amount = things_.empty() ? fmt::format("{} of {}", in_bytes(done_), in_bytes(total_))
                                             : fmt::format("{:.0f} of {:.0f} {}", done_, total_, things_);
  draw(fmt::format("\r\033[K  {} {:3.0f}%  {}  {:.0f} s left", bar, 100 * share, amount, left));
}

}  // namespace posenc::cli
