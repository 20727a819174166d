#include "cli/plots/gnuplot.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <vector>

#include "cli/system/descriptor.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"

namespace posenc::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kMostTime{60};
constexpr std::size_t kMostOutput = std::size_t{256} << 20U;
constexpr std::size_t kMostMessages = 4096;

bool is_program(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) && access(path.c_str(), X_OK) == 0;
}

struct Pipe {
  Descriptor read, write;
};
Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) fail_with_errno("gnuplot", errno);
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}
void never_wait(const Descriptor& end) { fcntl(end.number(), F_SETFL, fcntl(end.number(), F_GETFL) | O_NONBLOCK); }

// The user's environment without the variables that would change how gnuplot draws.
std::vector<std::string> environment() {
  std::vector<std::string> kept = {"LC_ALL=C.UTF-8"};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    if (text.starts_with("LC_") || text.starts_with("LANG") || text.starts_with("GNUPLOT") ||
        text.starts_with("GNUTERM") || text.starts_with("GDFONTPATH")) {
      continue;
    }
    kept.emplace_back(text);
  }
  return kept;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// A child process that does not outlive its owner.
class Child {
 public:
  Child(const std::string& program, int input, int output, int messages) {
    std::vector<std::string> words = {"gnuplot", "--default-settings", "-"}, variables = environment();
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, messages, STDERR_FILENO);
    // The child gets the default actions of the signals that this process ignores or handles.
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, number);
    posix_spawnattr_setsigdefault(&attributes, &signals);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    const int error = posix_spawn(&process_, program.c_str(), &files, &attributes, pointers_to(words).data(),
                                  pointers_to(variables).data());
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) {
      process_ = 0;
      fail_with_errno(program, error);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    while (waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {}
  }

  // The status as returned by waitpid. The output is closed by now, so this returns immediately unless gnuplot hangs.
  int end() {
    int status = 0;
    for (int tenths = 0; tenths < 50; ++tenths) {
      if (waitpid(process_, &status, WNOHANG) == process_) {
        process_ = 0;
        return status;
      }
      stop_if_signalled();
      poll(nullptr, 0, tenths == 0 ? 10 : 100);
    }
    throw Failure{kFilesFailed, "gnuplot: does not end"};
  }

 private:
  pid_t process_ = 0;
};

// Reads what is available, and closes the pipe at its end. Keeps at most `most` bytes.
void take(Descriptor& end, std::string& text, std::size_t most) {
  std::array<char, 65536> bytes{};
  const ssize_t count = read(end.number(), bytes.data(), bytes.size());
  if (count > 0) {
    text.append(bytes.data(), std::min(static_cast<std::size_t>(count), most - std::min(most, text.size())));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    end = Descriptor();
  }
}

void give(Descriptor& end, std::string_view& rest) {
  const ssize_t count = write(end.number(), rest.data(), rest.size());
  if (count > 0) rest.remove_prefix(count);
  // gnuplot has exited; its messages say why.
  const bool broken = count < 0 && errno != EINTR && errno != EAGAIN;
  if (rest.empty() || broken) end = Descriptor();
}

struct Streams {
  Descriptor input, output, messages;
};
struct Answer {
  std::string output, messages;
};

// Serves all three pipes at once, so that neither process blocks the other.
Answer converse(Streams& streams, std::string_view script) {
  Answer answer;
  const auto end = Clock::now() + kMostTime;
  while (streams.output.is_open() || streams.messages.is_open()) {
    stop_if_signalled();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    if (left <= 0) {
      throw Failure{kFilesFailed, fmt::format("gnuplot: does not end (stopped after {} s)", kMostTime.count())};
    }
    // poll ignores negative descriptors.
    std::array<pollfd, 3> waiting = {{{streams.input.number(), POLLOUT, 0},
                                      {streams.output.number(), POLLIN, 0},
                                      {streams.messages.number(), POLLIN, 0}}};
    if (poll(waiting.data(), waiting.size(), static_cast<int>(left)) < 0) continue;
    if (waiting[0].revents != 0) give(streams.input, script);
    if (waiting[1].revents != 0) take(streams.output, answer.output, kMostOutput);
    if (waiting[2].revents != 0) take(streams.messages, answer.messages, kMostMessages);
  }
  return answer;
}

// The line that states the error: the last that is not empty.
std::string reason_in(std::string_view messages) {
  std::string reason;
  while (!messages.empty()) {
    const std::string_view line = messages.substr(0, messages.find('\n'));
    messages.remove_prefix(std::min(messages.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r^") != std::string_view::npos) reason = line;
  }
  return reason;
}

}  // namespace

std::string gnuplot_path() {
  const char* const variable = std::getenv("PATH");
  std::string_view rest = variable == nullptr ? "" : variable;
  while (!rest.empty()) {
    const std::string_view folder = rest.substr(0, rest.find(':'));
    rest.remove_prefix(std::min(rest.size(), folder.size() + 1));
    if (!folder.starts_with('/')) continue;
    if (std::string path = fmt::format("{}/gnuplot", folder); is_program(path)) return path;
  }
  return "";
}

std::string run_gnuplot(std::string_view script) {
  const std::string program = gnuplot_path();
  if (program.empty()) {
    throw Failure{kFilesFailed,
                  "gnuplot draws the files of plot and is not installed (Debian: apt-get install gnuplot-nox); "
                  "without -o the figure is drawn in the terminal"};
  }
  Pipe input = make_pipe(), output = make_pipe(), messages = make_pipe();
  Child child(program, input.read.number(), output.write.number(), messages.write.number());
  for (Descriptor* const theirs : {&input.read, &output.write, &messages.write}) {
    [[maybe_unused]] const Descriptor closed = std::move(*theirs);
  }
  for (const Descriptor* const ours : {&input.write, &output.read, &messages.read}) never_wait(*ours);

  Streams streams{std::move(input.write), std::move(output.read), std::move(messages.read)};
  Answer answer = converse(streams, script);
  const int status = child.end();
  stop_if_signalled();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && !answer.output.empty()) {
    if (answer.output.size() >= kMostOutput) throw Failure{kFilesFailed, "gnuplot: wrote too much"};
    return std::move(answer.output);
  }
  std::string what = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                                         : fmt::format("failed with status {}", WEXITSTATUS(status));
  if (const std::string reason = reason_in(answer.messages); !reason.empty()) what += fmt::format(": {}", reason);
  throw Failure{kFilesFailed, fmt::format("gnuplot: {}", what)};
}

}  // namespace posenc::cli
