#include "cli/lab/lab_progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace posenc::cli {
namespace {

constexpr int kBarWidth = 24;

void show(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

LabProgress::LabProgress(double total, int jobs, bool quiet)
    : total_(total),
      jobs_(jobs),
      is_quiet_(quiet),
      is_terminal_(isatty(STDERR_FILENO) == 1),
      next_(Clock::now() + (is_terminal_ ? std::chrono::seconds(0) : std::chrono::seconds(10))) {}

LabProgress::~LabProgress() { clear(); }

void LabProgress::clear() {
  if (is_drawn_) show("\r\033[K");
  is_drawn_ = false;
}

void LabProgress::skip(double work) {
  done_ += work;
  before_ += work;
}

std::string LabProgress::time_left() const {
  const double seconds = std::chrono::duration<double>(Clock::now() - begin_).count();
  const double own = done_ - before_;
  const double left = own > 0 ? seconds * (total_ - done_) / own : 0;
  return fmt::format("{}:{:02}", static_cast<int>(left) / 60, static_cast<int>(left) % 60);
}

void LabProgress::step(const lab::Job& job, int number, const lab::Metric& metric, double work) {
  done_ += work;
  speed_ = speed_ == 0 ? metric.tokens_per_second : 0.95 * speed_ + 0.05 * metric.tokens_per_second;
  if (is_quiet_ || Clock::now() < next_) return;
  const double share = std::clamp(total_ > 0 ? done_ / total_ : 1.0, 0.0, 1.0);
  const std::string facts =
      fmt::format("model {} of {}  {}  step {:.0f}/{}  loss {:.3f}  {:.1f}k tokens/s  {} left", number, jobs_,
                  job.name, metric.step, job.steps, metric.loss, speed_ / 1e3, time_left());
  if (!is_terminal_) {
    show(fmt::format("posenc: {:3.0f}%  {}\n", 100 * share, facts));
    next_ = Clock::now() + std::chrono::seconds(10);
    return;
  }
  std::string bar;
  for (int i = 0; i < kBarWidth; ++i) bar += i < static_cast<int>(share * kBarWidth) ? "█" : "░";
  show(fmt::format("\r\033[K{} {:3.0f}%  {}", bar, 100 * share, facts));
  is_drawn_ = true;
  next_ = Clock::now() + std::chrono::milliseconds(200);
}

void LabProgress::done(const std::string& line) {
  if (is_quiet_) return;
  clear();
  show(fmt::format("posenc: {}\n", line));
}

}  // namespace posenc::cli
