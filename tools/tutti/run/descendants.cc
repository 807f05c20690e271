#include "run/descendants.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <thread>
#include <vector>

namespace tutti::internal::tools {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

void kill_children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> pids;
  for (pid_t pid; file >> pid;) pids.push_back(pid);
  for (const pid_t pid : pids) kill(pid, SIGKILL);
}

void end_descendants() {
  const auto give_up = Clock::now() + 5s;  // a process that the kernel will not let go
  while (Clock::now() < give_up) {
    kill_children();
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;  // none left
    if (ended == 0) std::this_thread::sleep_for(5ms);
  }
}

}  // namespace tutti::internal::tools
