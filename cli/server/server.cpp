// The explorer's server: a fixed table of files, read-only, on the loopback interface. libmicrohttpd implements HTTP;
// this file decides what may be requested, by whom, and for how long (docs/decisions/0016).

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <spawn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "cli/server/site.h"
#include "cli/system/failure.h"
#include "cli/system/signals.h"
#include "cli/system/streams.h"

extern char** environ;

namespace posenc::cli {
namespace {

using Clock = std::chrono::steady_clock;
constexpr unsigned kMostConnections = 256;
constexpr unsigned kIdleSeconds = 5;
constexpr std::size_t kMemoryPerConnection = std::size_t{16} << 10;
constexpr int kMostHeaders = 64;
constexpr std::chrono::seconds kHeadDeadline{5};     // from the connection, or the last answer, to a complete header
constexpr std::chrono::seconds kAnswerDeadline{30};  // from the header to the last byte sent
constexpr std::chrono::milliseconds kWatchInterval{250};

constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The total time of a connection, which libmicrohttpd does not limit: its timeout restarts with every byte.
class Deadlines {
 public:
  void start(int socket, std::chrono::seconds allowed) {
    const std::lock_guard lock(mutex_);
    ends_[socket] = Clock::now() + allowed;
  }
  void forget(int socket) {
    const std::lock_guard lock(mutex_);
    ends_.erase(socket);
  }
  /// Only its owner closes the socket; this only makes it fail.
  void enforce() {
    const std::lock_guard lock(mutex_);
    const auto now = Clock::now();
    for (auto& [socket, end] : ends_) {
      if (now < end) continue;
      shutdown(socket, SHUT_RDWR);
      end = now + kAnswerDeadline;
    }
  }

 private:
  std::mutex mutex_;
  std::map<int, Clock::time_point> ends_;
};

struct Server {
  std::array<std::string, 2> hosts;
  Deadlines deadlines;
};

int socket_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* const info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  return info == nullptr ? -1 : info->connect_fd;
}

struct Head {
  int headers = 0, hosts = 0;
  bool has_body = false;
  std::string_view host, known;  // what it was sent to, and the tags of what the browser has
};

MHD_Result look_at_header(void* context, MHD_ValueKind, const char* name, const char* value) {
  Head& head = *static_cast<Head*>(context);
  ++head.headers;
  if (strcasecmp(name, "Host") == 0) {
    ++head.hosts;
    head.host = value == nullptr ? "" : value;
  }
  if (strcasecmp(name, "If-None-Match") == 0 && value != nullptr) head.known = value;
  if (strcasecmp(name, "Transfer-Encoding") == 0) head.has_body = true;
  if (strcasecmp(name, "Content-Length") == 0 && (value == nullptr || std::strcmp(value, "0") != 0))
    head.has_body = true;
  return MHD_YES;
}

struct Reply {
  unsigned status;
  std::string_view type, bytes, tag = {};
};
constexpr std::string_view kNotFoundPage = "/404.html";
constexpr std::string_view kText = "text/plain; charset=utf-8";

Reply reply_to(const Server& server, std::string_view method, std::string_view path, const Head& head) {
  if (head.headers > kMostHeaders) return {MHD_HTTP_REQUEST_HEADER_FIELDS_TOO_LARGE, kText, "too many headers\n"};
  // Rejects other sites whose name resolves to this machine (DNS rebinding): they would have access to this one.
  if (head.hosts != 1) return {MHD_HTTP_BAD_REQUEST, kText, "one Host header is needed\n"};
  const auto is_mine = [&](const std::string& host) {
    return host.size() == head.host.size() && strncasecmp(host.data(), head.host.data(), host.size()) == 0;
  };
  if (std::none_of(server.hosts.begin(), server.hosts.end(), is_mine)) {
    return {MHD_HTTP_MISDIRECTED_REQUEST, kText, "this host is not served here\n"};
  }
  if (method != "GET" && method != "HEAD") return {MHD_HTTP_METHOD_NOT_ALLOWED, kText, "only GET and HEAD\n"};
  if (head.has_body) return {MHD_HTTP_BAD_REQUEST, kText, "a request here has no body\n"};
  if (path == "/") path = "/index.html";
  Reply reply{MHD_HTTP_NOT_FOUND, kText, "not found\n"};
  for (const SiteFile& file : site_files()) {
    if (file.path == path && path != kNotFoundPage) {
      // what the browser has already is not sent again
      const bool is_known = head.known.find(file.tag) != std::string_view::npos;
      if (is_known) return {MHD_HTTP_NOT_MODIFIED, file.type, {}, file.tag};
      return {MHD_HTTP_OK, file.type, file.bytes, file.tag};
    }
    if (file.path == kNotFoundPage) reply = {MHD_HTTP_NOT_FOUND, file.type, file.bytes};
  }
  return reply;
}

MHD_Result send(MHD_Connection* connection, const Reply& reply) {
  // MHD_RESPMEM_PERSISTENT: the bytes live as long as the program and are not modified.
  MHD_Response* const response = MHD_create_response_from_buffer(
      reply.bytes.size(), const_cast<char*>(reply.bytes.data()), MHD_RESPMEM_PERSISTENT);
  if (response == nullptr) return MHD_NO;
  const std::string type(reply.type), policy(kPolicy);
  const std::array<std::array<const char*, 2>, 7> headers = {{{"Content-Type", type.c_str()},
                                                              {"Content-Security-Policy", policy.c_str()},
                                                              {"X-Content-Type-Options", "nosniff"},
                                                              {"Referrer-Policy", "no-referrer"},
                                                              {"Cross-Origin-Resource-Policy", "same-origin"},
                                                              {"Cross-Origin-Opener-Policy", "same-origin"},
                                                              {"Cache-Control", "no-cache"}}};
  MHD_Result done = MHD_YES;
  for (const auto& [name, value] : headers) {
    if (MHD_add_response_header(response, name, value) != MHD_YES) done = MHD_NO;
  }
  if (reply.status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
  const bool is_found = reply.status == MHD_HTTP_OK || reply.status == MHD_HTTP_NOT_MODIFIED;
  if (!reply.tag.empty()) MHD_add_response_header(response, "ETag", std::string(reply.tag).c_str());
  if (!is_found) MHD_add_response_header(response, "Connection", "close");
  if (done == MHD_YES) done = MHD_queue_response(connection, reply.status, response);
  MHD_destroy_response(response);
  return done;
}

MHD_Result answer(void* context, MHD_Connection* connection, const char* url, const char* method, const char*,
                  const char*, std::size_t* size, void** memory) {
  Server& server = *static_cast<Server*>(context);
  Head head;
  MHD_get_connection_values(connection, MHD_HEADER_KIND, look_at_header, &head);
  const Reply reply = reply_to(server, method, url, head);
  if (*memory == nullptr) {
    // First called with only the header. A rejected request is rejected now, before its body is read, and its
    // connection is closed; any other is answered when it is complete, and its connection stays open.
    *memory = context;
    server.deadlines.start(socket_of(connection), kAnswerDeadline);
    const bool is_found = reply.status == MHD_HTTP_OK || reply.status == MHD_HTTP_NOT_MODIFIED;
    return is_found ? MHD_YES : send(connection, reply);
  }
  return *size == 0 ? send(connection, reply) : MHD_NO;
}

void on_answered(void* context, MHD_Connection* connection, void** memory, MHD_RequestTerminationCode) {
  if (*memory == nullptr) return;
  static_cast<Server*>(context)->deadlines.start(socket_of(connection), kHeadDeadline);
}

void on_connection(void* context, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode code) {
  Deadlines& deadlines = static_cast<Server*>(context)->deadlines;
  if (code == MHD_CONNECTION_NOTIFY_STARTED) {
    deadlines.start(socket_of(connection), kHeadDeadline);
  } else {
    deadlines.forget(socket_of(connection));
  }
}

// No path of the site has an escape, so none is decoded: %00 would truncate the path.
std::size_t leave_escapes(void*, MHD_Connection*, char* text) { return std::strlen(text); }

void open_browser(const std::string& address) {
  std::string command = "xdg-open", argument = address;
  std::array<char*, 3> words = {command.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, command.c_str(), nullptr, nullptr, words.data(), environ);
  if (error != 0) tell(fmt::format("note: no browser was opened: xdg-open: {}", std::strerror(error)));
}

// A socket that listens at the port of this machine alone. Bound here, because the library does not say why it could not.
int listen_at(std::uint16_t port) {
  const std::string what = fmt::format("explore: 127.0.0.1 port {}", port);
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) fail_with_errno(what, errno);
  const int yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener, SOMAXCONN) != 0) {
    const int error = errno;
    close(listener);
    fail_with_errno(what, error);
  }
  return listener;
}
unsigned port_of(int listener) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0) fail_with_errno("explore", errno);
  return ntohs(address.sin_port);
}

struct StopDaemon {
  void operator()(MHD_Daemon* daemon) const { MHD_stop_daemon(daemon); }
};

}  // namespace

int serve_site(const ServeOptions& options) {
  Server server;
  const int listener = listen_at(options.port);  // the daemon closes it
  const unsigned port = port_of(listener);
  errno = 0;
  const std::unique_ptr<MHD_Daemon, StopDaemon> daemon(MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD, options.port, nullptr, nullptr, answer, &server, MHD_OPTION_LISTEN_SOCKET,
      static_cast<MHD_socket>(listener), MHD_OPTION_CONNECTION_LIMIT, kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT,
      kIdleSeconds, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMemoryPerConnection, MHD_OPTION_STRICT_FOR_CLIENT, 1,
      MHD_OPTION_UNESCAPE_CALLBACK, leave_escapes, nullptr, MHD_OPTION_NOTIFY_COMPLETED, on_answered, &server,
      MHD_OPTION_NOTIFY_CONNECTION, on_connection, &server, MHD_OPTION_END));
  if (!daemon) {
    fail_with_errno(fmt::format("explore: 127.0.0.1 port {}", port), errno != 0 ? errno : EIO);
  }
  server.hosts = {fmt::format("127.0.0.1:{}", port), fmt::format("localhost:{}", port)};
  const std::string shown = fmt::format("http://127.0.0.1:{}/", port);
  print(shown + "\n");
  if (!options.is_quiet) tell("serving the explorer to this machine alone; press Ctrl-C to stop");
  if (options.opens_browser) open_browser(shown);
  try {
    while (true) {
      std::this_thread::sleep_for(kWatchInterval);
      stop_if_signalled();
      server.deadlines.enforce();
    }
  } catch (const Failure& failure) {
    // Ctrl-C is how this verb ends.
    if (failure.code != 128 + SIGINT && failure.code != 128 + SIGTERM) throw;
  }
  return kDone;
}

}  // namespace posenc::cli
