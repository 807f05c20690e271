#include "run/attempt.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <span>
#include <utility>

#include "run/descendants.h"

namespace tutti::internal::tools {
namespace {

using namespace std::chrono_literals;

constexpr auto kGrace = 3s;        // for ranks to notice by themselves: the library tells them within a second
constexpr auto kTermGrace = 2s;    // between SIGTERM and SIGKILL
constexpr auto kStragglers = 1s;   // for children of ranks (a `tee`) to end after the last rank has
constexpr auto kClearing = 5s;     // for killed children to go
constexpr auto kReaderGrace = 2s;  // for who reads the output of a job that was ended to take some more of it

std::string how_it_ended(int status) {
  if (WIFEXITED(status)) return fmt::format("exited with status {}", WEXITSTATUS(status));
  return fmt::format("was killed by signal {} ({}){}", WTERMSIG(status), strsignal(WTERMSIG(status)),
                     WCOREDUMP(status) ? ", core dumped" : "");
}

}  // namespace

int Attempt::run() {
  for (int index = 0; index < job_.ranks; ++index) {
    if (start(index)) continue;
    killed_ = true;
    signal_all(SIGKILL);
    stage_ = Stage::killing;
    break;
  }
  while (stage_ != Stage::over) watch();
  take_reports();  // what a rank sent, it sent before it ended
  return status_ == 0 && (reported_ || output_.has_failed()) ? 1 : status_;
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
    output_.say(fmt::format("cannot start rank {}: {}; start fewer ranks, or raise ulimit -n and ulimit -u",
                            job_.first_rank + index, strerror(error)));
    status_ = 1;
    return false;
  }
  pids_.push_back(pid);
  ++alive_;
  const bool executed = read(report[0], &error, sizeof error) == 0;  // the end of the pipe is a successful exec
  close(report[0]);
  if (executed) return true;
  output_.say(fmt::format("cannot execute {}: {}", guardian_.plan.program, strerror(error)));
  status_ = 2;
  return false;
}

void Attempt::become_rank(int index, pid_t guardian, int out, int err, int report) const {
  const Plan& plan = guardian_.plan;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guardian) _exit(1);  // it died before the line above
  ::signal(SIGPIPE, guardian_.on_broken_pipe);
  if (out != STDOUT_FILENO) dup2(out, STDOUT_FILENO);
  if (err != STDERR_FILENO) dup2(err, STDERR_FILENO);
  if (index > 0) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);  // what is typed goes to the first rank
  if (!plan.places.empty()) topology::run_on(plan.places[static_cast<std::size_t>(index)]);
  setenv("TUTTI_RANK", std::to_string(job_.first_rank + index).c_str(), 1);
  setenv("TUTTI_SIZE", std::to_string(plan.size).c_str(), 1);
  setenv("TUTTI_MASTER", plan.master.c_str(), 1);
  setenv("TUTTI_LAUNCHER", plan.reports.c_str(), 1);
  if (!plan.secret.empty()) setenv("TUTTI_SECRET", plan.secret.c_str(), 1);
  std::vector<char*> argv;
  for (const std::string& argument : job_.argv) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  sigprocmask(SIG_SETMASK, &guardian_.rank_mask, nullptr);
  execv(plan.program.c_str(), argv.data());
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(report, &error, sizeof error);
  _exit(127);
}

void Attempt::watch() {
  std::vector<pollfd> fds{
      {guardian_.launcher, POLLIN, 0}, {guardian_.signals, POLLIN, 0}, {guardian_.reports.fd(), POLLIN, 0}};
  const std::size_t own = fds.size();
  int timeout_ms = -1;
  if (deadline_ != Clock::time_point::max()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - Clock::now());
    timeout_ms = std::max(0, static_cast<int>(left.count()));
  }
  output_.await(fds, timeout_ms);
  poll(fds.data(), fds.size(), timeout_ms);
  output_.forward(std::span(fds).subspan(own));
  if (fds[0].revents != 0) hear_launcher();
  if (fds[2].revents != 0) take_reports();
  hear_signals();
  reap();
  move_on();
}

void Attempt::hear_launcher() {
  unsigned char message = 0;
  if (read(guardian_.launcher, &message, 1) != 1) {  // the launcher is gone: so is the job
    end_descendants();
    _exit(1);
  }
  const int signal = message & ~kAlreadyDelivered;
  if ((message & kAlreadyDelivered) == 0) signal_all(signal);
  interrupt(signal);
}

// A terminal's signals reach the guardian itself as well; so does what is sent to the whole group. Those that are sent
// to the launcher alone are passed on by it.
void Attempt::hear_signals() {
  signalfd_siginfo info;
  while (read(guardian_.signals, &info, sizeof info) == sizeof info) {
    if (info.ssi_signo != SIGCHLD) interrupt(static_cast<int>(info.ssi_signo));
  }
}

void Attempt::interrupt(int signal) {
  if (!interrupted_) output_.say(fmt::format("{}: stopping the ranks", strsignal(signal)));
  interrupted_ = true;
  status_ = 1;
  stop_within(kGrace);
}

// The others are left alone: a rank that reports is one that leaves, and they hear of it as ever.
void Attempt::take_reports() {
  for (const RankReports::Report& report : guardian_.reports.take()) {
    if (!reported_) {
      output_.say(
          fmt::format("rank {} ended badly, which its exit status may not show: {}", report.rank, report.words));
    }
    reported_ = true;
  }
}

void Attempt::reap() {
  std::vector<std::pair<int, int>> ended;  // rank of this host, status
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    const auto rank = std::find(pids_.begin(), pids_.end(), pid);
    if (rank == pids_.end()) continue;  // something that a rank left behind
    *rank = 0;
    --alive_;
    ended.emplace_back(static_cast<int>(rank - pids_.begin()), status);
  }
  has_children_ = pid == 0;
  // A signal to the group comes to the guardian before a rank that it ends can be waited for: the system sends it to
  // all before one of them may end. So it is here by now, and such an end is no failure of the rank.
  if (!ended.empty()) hear_signals();
  for (const auto& [rank, how] : ended) judge(rank, how);
}

void Attempt::judge(int rank, int status) {
  const bool failed = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (!failed || stage_ != Stage::running) return;  // only the first failure is news
  output_.say(fmt::format("rank {} {}{}", job_.first_rank + rank, how_it_ended(status),
                          alive_ > 0 ? "; stopping the others" : ""));
  status_ = job_.pass_on_status_2 && WIFEXITED(status) && WEXITSTATUS(status) == 2 ? 2 : 1;
  stop_within(kGrace);
}

void Attempt::stop_within(Clock::duration grace) {
  if (stage_ == Stage::running) enter(Stage::grace, grace);
}

void Attempt::enter(Stage stage, Clock::duration time) {
  stage_ = stage;
  deadline_ = time == Clock::duration::max() ? Clock::time_point::max() : Clock::now() + time;
}

void Attempt::move_on() {
  if (stage_ < Stage::lingering) {
    if (alive_ > 0)
      press_ranks();
    else
      enter(Stage::lingering, stage_ == Stage::killing ? Clock::duration::zero() : kStragglers);
  }
  if (stage_ == Stage::lingering && Clock::now() >= deadline_) {
    give_up_ = Clock::now() + kClearing;
    enter(Stage::clearing, Clock::duration::zero());
  }
  if (stage_ == Stage::clearing) clear_children();
  if (!has_children_ && stage_ < Stage::reading) enter(Stage::reading, Clock::duration::max());
  if (stage_ == Stage::reading) await_reader();
}

void Attempt::press_ranks() {
  if (Clock::now() < deadline_) return;
  killed_ = true;
  if (stage_ == Stage::grace) {
    signal_all(SIGTERM);
    enter(Stage::terminating, kTermGrace);
  } else {
    signal_all(SIGKILL);
    enter(Stage::killing, Clock::duration::max());
  }
}

// By their end, children of theirs come to be the guardian's.
void Attempt::clear_children() {
  kill_children();
  deadline_ = Clock::now() + 20ms;
  if (Clock::now() < give_up_) return;
  killed_ = true;
  has_children_ = false;
}

// Ranks that ended by themselves have said what somebody may want to read, however late. When they were killed, the
// command is to end.
void Attempt::await_reader() {
  if (output_.has_all_written()) return enter(Stage::over, Clock::duration::max());
  if (!interrupted_ && !killed_) return;
  const bool goes_on = output_.written() != read_ || deadline_ == Clock::time_point::max();
  if (goes_on) {
    read_ = output_.written();
    enter(Stage::reading, kReaderGrace);
  } else if (Clock::now() >= deadline_) {
    output_.drop();
    enter(Stage::reading, Clock::duration::max());
  }
}

void Attempt::signal_all(int signal) const {
  for (const pid_t pid : pids_) {
    if (pid != 0) kill(pid, signal);
  }
}

}  // namespace tutti::internal::tools
