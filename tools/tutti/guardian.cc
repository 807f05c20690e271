#include "guardian.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "rank_output.h"

namespace tutti::tools {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr auto kGrace = 3s;          // for ranks to notice by themselves: the library tells them within a second
constexpr auto kTermGrace = 2s;      // between SIGTERM and SIGKILL
constexpr int kStragglersMs = 1000;  // for children of ranks (a `tee`) to end after the last rank has

void say(const Job& job, const std::string& sentence) {
  const std::string line = fmt::format("{}: {}\n", job.name, sentence);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({}){}", WTERMSIG(status), strsignal(WTERMSIG(status)),
                     WCOREDUMP(status) ? ", core dumped" : "");
}

// All ranks of this host, started once: from the first fork to the last end.
class Attempt {
 public:
  Attempt(const Job& job, const Plan& plan, const sigset_t& mask) : job_(job), plan_(plan), mask_(mask) {}

  // Blocks until all have ended. Returns the exit status.
  int run(int launcher);
  bool interrupted() const { return interrupted_; }

 private:
  enum class Stage { running, grace, terminating, killing };

  bool start(int index);
  [[noreturn]] void become_rank(int index, pid_t guardian, int out, int err, int report) const;
  void watch(int launcher, int child_signals);
  void hear(int launcher);
  void reap();
  void escalate();
  void stop_within(Clock::duration grace);
  void signal_all(int signal) const;

  const Job& job_;
  const Plan& plan_;
  const sigset_t& mask_;
  std::vector<pid_t> pids_;  // by rank of this host; 0 once it has ended
  int alive_ = 0;
  RankOutput output_;
  Stage stage_ = Stage::running;
  Clock::time_point deadline_ = Clock::time_point::max();
  int status_ = 0;
  bool interrupted_ = false;
  sighandler_t on_broken_pipe_ = SIG_DFL;  // the ranks'; the guardian itself outlives who reads its output
};

int Attempt::run(int launcher) {
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  on_broken_pipe_ = ::signal(SIGPIPE, SIG_IGN);
  const int child_signals = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK);
  for (int index = 0; index < job_.ranks; ++index) {
    if (start(index)) continue;
    signal_all(SIGKILL);
    stage_ = Stage::killing;
    break;
  }
  while (alive_ > 0) watch(launcher, child_signals);
  end_descendants(stage_ == Stage::killing ? 0 : kStragglersMs);
  output_.forward();
  close(child_signals);
  ::signal(SIGPIPE, on_broken_pipe_);
  return status_;
}

// False when the system refuses: then status_ is set and the reason said.
bool Attempt::start(int index) {
  int report[2];
  const int out = job_.tag ? output_.add(job_.first_rank + index, STDOUT_FILENO) : STDOUT_FILENO;
  const int err = job_.tag ? output_.add(job_.first_rank + index, STDERR_FILENO) : STDERR_FILENO;
  const bool piped = out >= 0 && err >= 0 && pipe2(report, O_CLOEXEC) == 0;
  const pid_t guardian = getpid();
  const pid_t pid = piped ? fork() : -1;
  int error = errno;
  if (pid == 0) become_rank(index, guardian, out, err, report[1]);
  if (job_.tag && out >= 0) close(out);
  if (job_.tag && err >= 0) close(err);
  if (piped) close(report[1]);
  if (pid < 0) {
    if (piped) close(report[0]);
    say(job_, fmt::format("cannot start rank {}: {}; start fewer ranks, or raise ulimit -n and ulimit -u",
                          job_.first_rank + index, strerror(error)));
    status_ = 1;
    return false;
  }
  pids_.push_back(pid);
  ++alive_;
  const bool executed = read(report[0], &error, sizeof error) == 0;  // the end of the pipe is a successful exec
  close(report[0]);
  if (executed) return true;
  say(job_, fmt::format("cannot execute {}: {}", plan_.program, strerror(error)));
  status_ = 2;
  return false;
}

void Attempt::become_rank(int index, pid_t guardian, int out, int err, int report) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(1);  // it died before the line above
  ::signal(SIGPIPE, on_broken_pipe_);
  if (out != STDOUT_FILENO) dup2(out, STDOUT_FILENO);
  if (err != STDERR_FILENO) dup2(err, STDERR_FILENO);
  if (index > 0) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);  // what is typed goes to the first rank
  if (!plan_.places.empty()) topology::run_on(plan_.places[static_cast<std::size_t>(index)]);
  setenv("TUTTI_RANK", std::to_string(job_.first_rank + index).c_str(), 1);
  setenv("TUTTI_SIZE", std::to_string(plan_.size).c_str(), 1);
  setenv("TUTTI_MASTER", plan_.master.c_str(), 1);
  if (!plan_.secret.empty()) setenv("TUTTI_SECRET", plan_.secret.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& argument : job_.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &mask_, nullptr);
  execv(plan_.program.c_str(), argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

void Attempt::watch(int launcher, int child_signals) {
  std::vector<pollfd> fds{{launcher, POLLIN, 0}, {child_signals, POLLIN, 0}};
  for (const int fd : output_.fds()) fds.push_back({fd, POLLIN, 0});
  int timeout_ms = -1;
  if (deadline_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    timeout_ms = std::max(0, static_cast<int>(left.count()));
  }
  poll(fds.data(), fds.size(), timeout_ms);
  output_.forward();
  if (fds[0].revents != 0) hear(launcher);
  if (fds[1].revents != 0) {
    signalfd_siginfo info;
    while (read(child_signals, &info, sizeof info) > 0) {
    }
    reap();
  }
  if (Clock::now() >= deadline_) escalate();
}

void Attempt::hear(int launcher) {
  unsigned char message = 0;
  if (read(launcher, &message, 1) != 1) {  // the launcher is gone: so is the job
    end_descendants(0);
    _exit(1);
  }
  const int signal = message & ~kAlreadyDelivered;
  if (!interrupted_) say(job_, fmt::format("{}: stopping the ranks", strsignal(signal)));
  if ((message & kAlreadyDelivered) == 0) signal_all(signal);
  interrupted_ = true;
  status_ = 1;
  stop_within(kGrace);
}

void Attempt::reap() {
  int status = 0;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto rank = std::find(pids_.begin(), pids_.end(), pid);
    if (rank == pids_.end()) continue;  // something that a rank left behind
    *rank = 0;
    --alive_;
    const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    if (!failed || stage_ != Stage::running) continue;  // only the first failure is news
    say(job_, fmt::format("rank {} {}{}", job_.first_rank + (rank - pids_.begin()), how_it_ended(status),
                          alive_ > 0 ? "; stopping the others" : ""));
    status_ = job_.pass_on_status_2 && WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 2 : 1;
    stop_within(kGrace);
  }
}

void Attempt::stop_within(Clock::duration grace) {
  if (stage_ != Stage::running) return;
  stage_ = Stage::grace;
  deadline_ = Clock::now() + grace;
}

void Attempt::escalate() {
  signal_all(stage_ == Stage::grace ? SIGTERM : SIGKILL);
  stage_ = stage_ == Stage::grace ? Stage::terminating : Stage::killing;
  deadline_ = stage_ == Stage::terminating ? Clock::now() + kTermGrace : Clock::time_point::max();
}

void Attempt::signal_all(int signal) const {
  for (const pid_t pid : pids_) {
    if (pid != 0) kill(pid, signal);
  }
}

std::vector<pid_t> children() {
  std::ifstream file(fmt::format("/proc/self/task/{}/children", getpid()));
  std::vector<pid_t> pids;
  for (pid_t pid; file >> pid;) pids.push_back(pid);
  return pids;
}

}  // namespace

void end_descendants(int patience_ms) {
  const auto patience_ends = Clock::now() + std::chrono::milliseconds(patience_ms);
  const auto give_up = patience_ends + 5s;  // a process that the kernel will not let go
  while (Clock::now() < give_up) {
    if (Clock::now() >= patience_ends) {
      for (const pid_t pid : children()) kill(pid, SIGKILL);
    }
    const pid_t ended = waitpid(-1, nullptr, WNOHANG);
    if (ended < 0) return;  // none left
    if (ended == 0) std::this_thread::sleep_for(5ms);
  }
}

int guard(const Job& job, const Plan& plan, int launcher, const sigset_t& mask) {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  for (int restarts = 0;; ++restarts) {
    Attempt attempt(job, plan, mask);
    const int status = attempt.run(launcher);
    if (status == 0 || attempt.interrupted() || restarts == job.max_restarts) return status;
    say(job, fmt::format("starting all ranks again ({} of {})", restarts + 1, job.max_restarts));
  }
}

}  // namespace tutti::tools
