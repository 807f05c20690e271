#include "control/process_watch.h"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

namespace {

// What the process said before it ended is read first.
constexpr std::chrono::milliseconds kForItsLastWords{10};

}  // namespace

// Field 22 of proc_pid_stat(5). The name in field 2 may hold anything, but no ')' stands behind it.
std::uint64_t start_of_process(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::ostringstream text;
  text << file.rdbuf();  // the process may end meanwhile: this does not throw then
  const std::size_t behind_name = text.view().rfind(')');
  if (behind_name == std::string_view::npos) return 0;
  std::istringstream fields(text.str().substr(behind_name + 1));
  std::string field;
  for (int number = 3; number <= 22; ++number) fields >> field;
  std::uint64_t start = 0;
  return fields && std::from_chars(field.data(), field.data() + field.size(), start).ec == std::errc{} ? start : 0;
}

std::uint64_t own_pid_space() {
  struct stat status;
  return ::stat("/proc/self/ns/pid", &status) == 0 ? static_cast<std::uint64_t>(status.st_ino) : 0;
}

ProcessWatch::ProcessWatch(asio::io_context& io, int rank, const std::vector<Member>& members,
                           std::function<void(int)> ended)
    : io_(io), rank_(rank), members_(members), ended_(std::move(ended)) {}

void ProcessWatch::follow(const std::function<bool(int)>& is_gone, const std::function<bool(int)>& is_doubted) {
  const Member& own = members_[static_cast<std::size_t>(rank_)];
  bool is_first = true;
  for (int rank = 0; rank < static_cast<int>(members_.size()); ++rank) {
    const Member& other = members_[static_cast<std::size_t>(rank)];
    if (rank == rank_ || other.host_id != own.host_id || is_gone(rank)) {
      watched_.erase(rank);
      continue;
    }
    if (rank < rank_ && !is_first) continue;  // a lower one watches it
    if (rank > rank_ && !is_first) break;     // likewise
    if (rank < rank_) is_first = is_doubted(rank);
    if (!watched_.contains(rank)) watch(rank);
  }
}

void ProcessWatch::watch(int rank) {
  const Member &other = members_[static_cast<std::size_t>(rank)], &own = members_[static_cast<std::size_t>(rank_)];
  auto& watched = watched_[rank];
  const bool is_visible = own.pid_space != 0 && other.pid_space == own.pid_space && other.started != 0;
  if (!is_visible || other.pid == own.pid) return;
  const int fd = static_cast<int>(::syscall(SYS_pidfd_open, static_cast<pid_t>(other.pid), 0));
  if (fd < 0) {
    if (errno == ESRCH) say_ended(rank);
    return;
  }
  watched = std::make_shared<asio::posix::stream_descriptor>(io_, fd);
  const std::uint64_t started = start_of_process(other.pid);
  if (started != 0 && started != other.started) return say_ended(rank);  // another one has its number
  watched->async_wait(asio::posix::stream_descriptor::wait_read, [this, rank, kept = watched](error_code ec) {
    if (!ec) say_ended(rank);
  });
}

void ProcessWatch::say_ended(int rank) {
  const auto pause = std::make_shared<asio::steady_timer>(io_, kForItsLastWords);
  pause->async_wait([this, rank, pause](error_code ec) {
    if (!ec) ended_(rank);
  });
}

}  // namespace tutti::internal
