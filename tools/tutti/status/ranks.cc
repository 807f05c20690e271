#include "status/ranks.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>

#include "base/descriptor.h"
#include "command.h"
#include "control/status_protocol.h"
#include "net/socket.h"

namespace tutti::internal::tools {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kSilence{3};  // longer than a rank gives another caller (kCallerWithin)

std::optional<int> number_in(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

// "stopped": what the kernel says of the process.
std::string state_of(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("State:")) continue;
    const std::size_t open = line.find('('), close = line.find(')');
    return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1) : "";
  }
  return "gone";
}

// A rank that is asked.
struct Asked {
  RankReport report;
  Socket socket;
  std::string text{};
  Clock::time_point until{};
};

void begin(Asked& asked, const std::string& job, bool with_calls) {
  int error = 0;
  asked.socket = start_connecting(Endpoint::local(status_name(job, asked.report.rank)), error);
  if (error != 0) {
    asked.report.why_none = error == ECONNREFUSED ? "it has left" : system_words(error);
    asked.socket = Socket();
    return;
  }
  ucred other{};
  socklen_t bytes = sizeof other;
  ::getsockopt(asked.socket.fd(), SOL_SOCKET, SO_PEERCRED, &other, &bytes);
  asked.report.pid = other.pid;
  if (!is_same_user(asked.socket.fd())) {
    asked.report.why_none = "a process of another user listens in its place";
    asked.socket = Socket();
    return;
  }
  const char wanted = with_calls ? kStatusWhole : kStatusBrief;
  ::send(asked.socket.fd(), &wanted, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  asked.until = Clock::now() + kSilence;
}

void end(Asked& asked, const std::string& why_none) {
  asked.socket = Socket();
  RankReport& report = asked.report;
  report.why_none = why_none;
  if (!why_none.empty()) return;
  try {
    const pid_t pid = static_cast<pid_t>(report.pid);
    const int rank = report.rank;
    report = parse_report(asked.text);
    report.pid = pid;
    report.rank = rank;
  } catch (const std::exception& error) {
    report.why_none = fmt::format("its answer cannot be read: {}", error.what());
  }
}

void read(Asked& asked) {
  char bytes[65536];
  const ssize_t count = ::recv(asked.socket.fd(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (count > 0) {
    asked.text.append(bytes, static_cast<std::size_t>(count));
    asked.until = Clock::now() + kSilence;
  } else if (count == 0) {
    end(asked, asked.text.empty() ? "it has turned this process away" : "");
  } else if (errno != EAGAIN && errno != EINTR) {
    end(asked, system_words(errno));
  }
}

}  // namespace

std::map<std::string, std::vector<int>> find_jobs() {
  const std::string begins = "@" + status_prefix();
  std::map<std::string, std::vector<int>> jobs;
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.find(begins);
    if (at == std::string::npos) continue;
    const std::string rest = line.substr(at + begins.size());
    const std::size_t dash = rest.find('-');
    if (dash == std::string::npos) continue;
    // A connection has its listener's name too.
    const auto rank = number_in(std::string_view(rest).substr(dash + 1));
    std::vector<int>& ranks = jobs[rest.substr(0, dash)];
    if (rank && std::ranges::find(ranks, *rank) == ranks.end()) ranks.push_back(*rank);
  }
  for (auto& [job, ranks] : jobs) std::ranges::sort(ranks);
  return jobs;
}

std::vector<RankReport> ask(const std::string& job, const std::vector<int>& ranks, bool with_calls) {
  std::vector<Asked> all;
  for (const int rank : ranks) {
    all.push_back({.report = {.job = job, .rank = rank}, .socket = {}});
    begin(all.back(), job, with_calls);
  }
  while (true) {
    std::vector<pollfd> polled;
    std::vector<Asked*> whom;
    Clock::time_point until = Clock::now() + kSilence;
    for (Asked& asked : all) {
      if (!asked.socket) continue;
      polled.push_back({asked.socket.fd(), POLLIN, 0});
      whom.push_back(&asked);
      until = std::min(until, asked.until);
    }
    if (polled.empty()) break;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
    ::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) {
        read(*whom[i]);
      } else if (Clock::now() >= whom[i]->until) {
        end(*whom[i], fmt::format("its process is {}", state_of(static_cast<pid_t>(whom[i]->report.pid))));
      }
    }
  }
  std::vector<RankReport> reports;
  for (Asked& asked : all) reports.push_back(std::move(asked.report));
  return reports;
}

std::vector<RankReport> read_dumps(const std::string& directory, const std::string& job) {
  std::vector<RankReport> reports;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with("tutti-" + job) || !name.ends_with(".json")) continue;
    std::ifstream file(entry.path());
    std::ostringstream text;
    text << file.rdbuf();
    try {
      reports.push_back(parse_report(text.str()));
    } catch (const std::exception& wrong) {
      throw UsageError(fmt::format("{}: {}", entry.path().string(), wrong.what()));
    }
  }
  if (error) throw UsageError(fmt::format("{}: {}", directory, error.message()));
  std::erase_if(reports, [&](const RankReport& report) { return !job.empty() && report.job != job; });
  if (reports.empty()) throw UsageError(fmt::format("{} has no tutti-JOB-rankR.json of such a job", directory));
  std::ranges::sort(reports, {}, &RankReport::rank);
  return reports;
}

}  // namespace tutti::internal::tools
