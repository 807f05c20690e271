#include "run/rank_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

namespace tutti::internal::tools {

int RankProcesses::start(int index, int attempt) {
  int report[2];
  const int out = job_.tag ? guardian_.output.add(job_.first_rank + index, STDOUT_FILENO) : STDOUT_FILENO;
  const int err = job_.tag ? guardian_.output.add(job_.first_rank + index, STDERR_FILENO) : STDERR_FILENO;
  const bool piped = out >= 0 && err >= 0 && pipe2(report, O_CLOEXEC) == 0;
  const pid_t guardian = getpid();
  const pid_t pid = piped ? fork() : -1;
  int error = errno;
  if (pid == 0) become_rank(index, attempt, guardian, out, err, report[1]);
  if (job_.tag && out >= 0) close(out);
  if (job_.tag && err >= 0) close(err);
  if (piped) close(report[1]);
  if (pid < 0) {
    if (piped) close(report[0]);
    guardian_.output.say(fmt::format("cannot start rank {}: {}; start fewer ranks, or raise ulimit -n and ulimit -u",
                                     job_.first_rank + index, strerror(error)));
    return 1;
  }
  pids_.push_back(pid);
  ++alive_;
  await_begin(report[0]);
  const bool failed =
      read(report[0], &error, sizeof error) == sizeof error;  // the end of the pipe is a successful exec
  close(report[0]);
  if (!failed) return 0;
  guardian_.output.say(fmt::format("cannot execute {}: {}", guardian_.plan.program, strerror(error)));
  return 2;
}

// Not for ever, as the disk of the program may not answer: only until the job is to end.
void RankProcesses::await_begin(int report) const {
  fcntl(report, F_SETFL, O_NONBLOCK);
  sigset_t pending;
  do {
    pollfd news[] = {{report, POLLIN, 0}, {guardian_.launcher, POLLIN, 0}};
    if (poll(news, std::size(news), 100) > 0) return;
    sigpending(&pending);
    sigdelset(&pending, SIGCHLD);
  } while (sigisemptyset(&pending) != 0);
}

void RankProcesses::become_rank(int index, int attempt, pid_t guardian, int out, int err, int report) const {
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
  setenv("TUTTI_ATTEMPT", std::to_string(attempt).c_str(), 1);
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

std::vector<std::pair<int, int>> RankProcesses::take_ended() {
  std::vector<std::pair<int, int>> ended;
  int status = 0;
  pid_t pid = 0;
  while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
    const auto rank = std::find(pids_.begin(), pids_.end(), pid);
    if (rank == pids_.end()) continue;  // something that a rank left behind
    *rank = 0;
    --alive_;
    has_any_succeeded_ = has_any_succeeded_ || status == 0;
    ended.emplace_back(static_cast<int>(rank - pids_.begin()), status);
  }
  has_children_ = pid == 0;
  return ended;
}

void RankProcesses::signal_all(int signal) const {
  for (const pid_t pid : pids_) {
    if (pid != 0) kill(pid, signal);
  }
}

}  // namespace tutti::internal::tools
