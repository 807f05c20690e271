// Ranks for tests as processes, forked from the test's.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/settings.h"

namespace tutti::internal {

// Runs body(r, report) in a process for each rank. What they report arrives here, character by character. None outlives
// this process. What a rank has forked ends with this object at the latest; if a test has failed, so does the rank.
class Processes {
 public:
  using Report = std::function<void(char)>;

  Processes(int ranks, const std::function<void(int, const Report&)>& body) {
    EXPECT_EQ(pipe(report_), 0);
    for (int r = 0; r < ranks; ++r) {
      children_.push_back(fork());
      groups_.push_back(children_.back());
      ::setpgid(children_.back(), 0);
      if (children_.back() != 0) continue;
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      body(r, [this](char what) { [[maybe_unused]] const auto told = ::write(report_[1], &what, 1); });
      ::_exit(0);
    }
  }
  ~Processes() {
    for (const pid_t child : children_) {
      if (child > 0 && testing::Test::HasFailure()) ::kill(child, SIGKILL);
      if (child > 0) ::waitpid(child, nullptr, 0);
    }
    for (const pid_t group : groups_) ::kill(-group, SIGKILL);
    for (const int fd : report_) ::close(fd);
  }

  char next_report() {
    char what = '?';
    pollfd end{.fd = report_[0], .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&end, 1, kReportsWithinMs), 1) << "no rank has reported anything";
    if (end.revents == 0) return what;
    EXPECT_EQ(::read(report_[0], &what, 1), 1);
    return what;
  }
  void signal(int rank, int signal) { ::kill(children_[rank], signal); }
  void kill(int rank) {
    ::kill(children_[rank], SIGKILL);
    ::waitpid(std::exchange(children_[rank], -1), nullptr, 0);
  }
  // Waits for a rank's end: its exit status, or 128 + the signal that ended it.
  int status_of(int rank) {
    int status = 0;
    ::waitpid(std::exchange(children_[rank], -1), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  static constexpr int kReportsWithinMs = 100'000;

  int report_[2];
  std::vector<pid_t> children_, groups_;  // a rank leads the process group of what it forks
};

inline Settings meeting_at(std::uint16_t port, const std::string& transport, int rank, int size) {
  Settings settings;
  settings.transport = transport;
  settings.rank = rank;
  settings.size = size;
  settings.master_address = "127.0.0.1";
  settings.master_port = port;
  settings.secret = "a secret of this test";
  return settings;
}

}  // namespace tutti::internal
