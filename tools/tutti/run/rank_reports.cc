#include "run/rank_reports.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "control/launcher.h"

namespace tutti::internal::tools {
namespace {

constexpr int kMaxReportsAtOnce = 4096;  // more than a queue holds: who sends without end does not hold up the guardian

// Of "rank 3: words".
std::optional<RankReports::Report> parse(std::string_view text) {
  constexpr std::string_view kBegin = "rank ";
  if (!text.starts_with(kBegin)) return std::nullopt;
  text.remove_prefix(kBegin.size());
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), rank);
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  if (error != std::errc() || rank < 0 || !text.starts_with(": ")) return std::nullopt;
  std::string words(text.substr(2));
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 0x7f; };
  std::replace_if(words.begin(), words.end(), is_control, ' ');
  return RankReports::Report{rank, std::move(words)};
}

bool is_of_this_user(msghdr& message) {
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr; part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_CREDENTIALS) continue;
    ucred sender;
    std::memcpy(&sender, CMSG_DATA(part), sizeof sender);
    return sender.uid == getuid();
  }
  return false;
}

}  // namespace

RankReports::RankReports(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);  // the byte before it stays 0: this says abstract
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  const int yes = 1;
  if (fd_ < 0 || (setsockopt(fd_, SOL_SOCKET, SO_PASSCRED, &yes, sizeof yes) == 0 &&
                  bind(fd_, reinterpret_cast<const sockaddr*>(&address), length) == 0)) {
    return;
  }
  const int problem = errno;
  close(std::exchange(fd_, -1));
  errno = problem;
}

RankReports::~RankReports() {
  if (fd_ >= 0) close(fd_);
}

std::vector<RankReports::Report> RankReports::take() const {
  std::vector<Report> reports;
  for (int i = 0; i < kMaxReportsAtOnce; ++i) {
    char text[internal::kMaxReportBytes];
    alignas(cmsghdr) char about[CMSG_SPACE(sizeof(ucred))];
    iovec piece{text, sizeof text};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    message.msg_control = about;
    message.msg_controllen = sizeof about;
    const ssize_t bytes = recvmsg(fd_, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (bytes < 0) break;
    if (!is_of_this_user(message)) continue;
    if (auto report = parse({text, static_cast<std::size_t>(bytes)})) reports.push_back(std::move(*report));
  }
  return reports;
}

}  // namespace tutti::internal::tools
