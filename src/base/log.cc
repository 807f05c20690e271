#include "base/log.h"

#include <poll.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>

namespace tutti::internal {
namespace {

// A pipe that has room for PIPE_BUF bytes may have lost it to another process by the time of the write, so the kernel
// is told not to wait, where it knows how to for pipes (Linux 6.4). For regular files it would refuse too much.
bool write_at_once(const std::string& text) {
  pollfd end{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
  if (::poll(&end, 1, 0) <= 0 || (end.revents & POLLOUT) == 0) return false;
  const std::size_t bytes = std::min<std::size_t>(text.size(), PIPE_BUF);
  struct stat facts {};
  if (::fstat(STDERR_FILENO, &facts) == 0 && S_ISFIFO(facts.st_mode)) {
    const iovec piece{const_cast<char*>(text.data()), bytes};
    if (::pwritev2(STDERR_FILENO, &piece, 1, -1, RWF_NOWAIT) >= 0) return true;
    if (errno == EAGAIN) return false;
  }
  return ::write(STDERR_FILENO, text.data(), bytes) >= 0;
}

void say_on_stderr(int rank, const std::string& line) {
  static std::atomic<int> dropped{0};
  const std::string who = "tutti: rank " + std::to_string(rank) + ": ";
  const int missing = dropped.exchange(0);
  const std::string before =
      missing == 0 ? "" : who + std::to_string(missing) + " lines were dropped, as nobody had read what is on stderr\n";
  if (!write_at_once(before + who + line.substr(0, PIPE_BUF / 2) + "\n")) dropped += missing + 1;
}

}  // namespace

void Log::say(LogLevel level, const std::string& text) const noexcept try {
  if (sink_) return sink_({level, rank_, text});
  say_on_stderr(rank_, text);
} catch (...) {  // no memory for the words, or the user's sink does not want them
}

}  // namespace tutti::internal
