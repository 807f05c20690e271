#include "bench/limit.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>

#include "tutti/error.h"

namespace tutti::internal::tools {

namespace {

constexpr double kRoundUs = 250e3;  // a round takes about as long, or less
constexpr std::size_t kFewestCalls = 3, kMostCalls = 100'000'000;

[[noreturn]] void fail(const char* what) {
  throw Error(ErrorCode::system, fmt::format("measuring the limit: {}", what));
}

// Both block; false at the end of the pipe.
template <class T>
bool read_whole(int fd, T& value) {
  ssize_t got;
  do got = read(fd, &value, sizeof value);
  while (got < 0 && errno == EINTR);
  return got == sizeof value;  // a pipe keeps so few bytes together
}
template <class T>
bool write_whole(int fd, const T& value) {
  return write(fd, &value, sizeof value) == sizeof value;
}

bool has_ended(pid_t child) {
  siginfo_t state{};
  return waitid(P_PID, static_cast<id_t>(child), &state, WEXITED | WNOHANG | WNOWAIT) != 0 || state.si_pid == child;
}

}  // namespace

std::size_t calls_to_time(double bytes, int ranks) {
  const std::size_t fewer = static_cast<std::size_t>(std::max(1, ranks / 2));
  return bytes < 64e3 ? 4000 / fewer : bytes < 4e6 ? 1000 / fewer : 60;
}

Limit::Limit(std::unique_ptr<LimitLoops> loops, std::vector<topology::Processors> places, int rounds, std::size_t calls,
             double round_us)
    : loops_(std::move(loops)), places_(std::move(places)), rounds_(rounds), calls_(calls), round_us_(round_us) {
  if (pipe(answers_) != 0) fail("the system refuses another pipe");
  const pid_t parent = getpid();
  for (int me = 0; me < loops_->processes(); ++me) {
    int orders[2];
    if (pipe(orders) != 0) fail("the system refuses another pipe");
    const pid_t child = fork();
    if (child < 0) fail("the system refuses another process");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      for (const int fd : orders_) close(fd);  // or the others would never see the end of theirs
      close(orders[1]);
      close(answers_[0]);
      serve(me, orders[0]);
      _exit(0);
    }
    children_.push_back(child);
    close(orders[0]);
    orders_.push_back(orders[1]);
  }
  close(answers_[1]);  // so that the death of process 0 shows as the end of the pipe
}

Limit::~Limit() {
  for (const int fd : orders_) close(fd);
  close(answers_[0]);
  for (const pid_t child : children_) waitpid(child, nullptr, 0);
}

std::optional<double> Limit::measure_us(std::size_t bytes) {
  if (!loops_->measures(bytes)) return std::nullopt;
  return ask({.bytes = bytes, .calls = calls_ > 0 ? calls_ : calls_a_round(bytes), .rounds = rounds_});
}

std::size_t Limit::calls_a_round(std::size_t bytes) {
  constexpr double kLeastUs = 0.001;  // of a call
  std::size_t calls = kFewestCalls;
  double us = ask({.bytes = bytes, .calls = calls, .rounds = 1});
  if (round_us_ <= 0) {
    // A machine that is busy with other things makes spinning processes slow: fewer calls then have to do.
    const auto fitting = static_cast<std::size_t>(kRoundUs / std::max(us, kLeastUs));
    return std::min(loops_->calls_for(bytes), std::max(fitting, kFewestCalls));
  }
  const double least = round_us_ / 10;
  while (std::max(us, kLeastUs) * static_cast<double>(calls) < least && calls < kMostCalls) {
    calls *= 8;
    us = ask({.bytes = bytes, .calls = calls, .rounds = 1});
  }
  return std::clamp(static_cast<std::size_t>(round_us_ / std::max(us, kLeastUs)), kFewestCalls, kMostCalls);
}

double Limit::ask(const Task& task) {
  for (const int fd : orders_)
    if (!write_whole(fd, task)) fail("a process has ended");
  for (pollfd answer{answers_[0], POLLIN, 0}; poll(&answer, 1, 1000) == 0;)
    for (const pid_t child : children_)
      if (has_ended(child)) fail("a process has ended");
  double us = 0;
  if (!read_whole(answers_[0], us)) fail("a process has ended");
  return us;
}

void Limit::serve(int me, int orders) const {
  topology::run_on(places_[static_cast<std::size_t>(me)]);
  for (Task task; read_whole(orders, task);) {
    std::vector<double> figures;
    loops_->round(me, task.bytes, task.calls);  // warms caches and page tables
    for (int round = 0; round < task.rounds; ++round) figures.push_back(loops_->round(me, task.bytes, task.calls));
    if (me == 0 && !write_whole(answers_[1], median(figures))) return;
  }
}

double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double median(std::vector<double> figures) {
  const auto middle = figures.begin() + static_cast<std::ptrdiff_t>(figures.size() / 2);
  std::nth_element(figures.begin(), middle, figures.end());
  return *middle;
}

}  // namespace tutti::internal::tools
