// A rank for tests that kill its job: killed_rank MILLISECONDS CHILDREN. Two threads write without end, to stdout and
// to stderr, while the first one makes calls. After that time all ranks end. CHILDREN has a letter for each rank: what
// it leaves behind.
//
//   -  nothing
//   b  a child, forked before the rank joins
//   c  a child that was forked after its first calls, and has copies of all that the rank holds
//   s  the same, in a session of its own, and it ignores what a terminal sends
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tutti/communicator.h"

namespace {

using namespace std::chrono_literals;

void leave_a_child(bool in_a_session) {
  if (::fork() != 0) return;
  ::prctl(PR_SET_NAME, "child_of_rank");
  if (in_a_session) {
    ::setsid();
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
  }
  while (true) ::pause();
}

void write_without_end(int target) {
  const std::string line = std::string(4095, 'x') + '\n';
  while (::write(target, line.data(), line.size()) > 0) std::this_thread::sleep_for(1ms);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 3) return 2;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(std::atoi(words[1]));
  const int rank = std::atoi(std::getenv("TUTTI_RANK"));
  const char child = words[2][rank];
  if (child == 'b') leave_a_child(false);
  std::thread(write_without_end, STDOUT_FILENO).detach();
  std::thread(write_without_end, STDERR_FILENO).detach();
  tutti::Communicator world = tutti::Communicator::from_env();
  std::vector<std::int32_t> values(50'000, 1);
  world.all_reduce(std::span(values), tutti::Op::max);
  if (child == 'c' || child == 's') leave_a_child(child == 's');
  for (std::int32_t is_over = 0; is_over == 0;) {
    world.all_reduce(std::span(values), tutti::Op::max);
    is_over = std::chrono::steady_clock::now() > end;
    world.all_reduce(std::span(&is_over, 1), tutti::Op::max);
  }
  return 0;
} catch (const tutti::Error&) {
  return 1;
}
