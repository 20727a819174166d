#include "cli/system/signals.h"

#include <csignal>

#include "cli/system/failure.h"

namespace posenc::cli {
namespace {

// The only variable that a handler may access.
volatile std::sig_atomic_t signal_seen = 0;

void remember(int number) { signal_seen = number; }

}  // namespace

void catch_signals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (sigaction(number, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) continue;
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    // no SA_RESTART: a write() that waits for a slow reader must return
    sigaction(number, &action, nullptr);
  }
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void stop_if_signalled() {
  if (signal_seen != 0) throw Failure{128 + static_cast<int>(signal_seen), ""};
}

void forget_signal() { signal_seen = 0; }

}  // namespace posenc::cli
