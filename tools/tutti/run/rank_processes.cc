#include "run/rank_processes.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <map>
#include <string>

namespace tutti::internal::tools {
namespace {

// "NAME=value" of all variables that a rank starts with.
std::vector<std::string> environment_of(const Job& job, const Plan& plan, int index, int attempt) {
  std::map<std::string, std::string> own{{"TUTTI_RANK", std::to_string(job.first_rank + index)},
                                         {"TUTTI_SIZE", std::to_string(plan.size)},
                                         {"TUTTI_ATTEMPT", std::to_string(attempt)},
                                         {"TUTTI_MASTER", plan.master},
                                         {"TUTTI_LAUNCHER", plan.reports}};
  if (!plan.secret.empty()) own["TUTTI_SECRET"] = plan.secret;
  std::vector<std::string> all;
  for (char** inherited = environ; *inherited != nullptr; ++inherited) {
    const std::string variable = *inherited;
    if (!own.contains(variable.substr(0, variable.find('=')))) all.push_back(variable);
  }
  for (const auto& [name, value] : own) all.push_back(fmt::format("{}={}", name, value));
  return all;
}

// What execve() takes: pointers to `texts`, which outlives them.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

int RankProcesses::start(int index, int attempt) {
  // All that allocates memory is done before fork(): another thread of the guardian, which writes, may hold a lock of
  // the allocator then, and in the child nobody would ever let go of it.
  const Plan& plan = guardian_.plan;
  std::vector<std::string> arguments = job_.argv;
  std::vector<std::string> variables = environment_of(job_, plan, index, attempt);
  const std::vector<char*> argv = pointers_to(arguments), envp = pointers_to(variables);
  int report[2];
  const int out = job_.tag ? guardian_.output.add(job_.first_rank + index, STDOUT_FILENO) : STDOUT_FILENO;
  const int err = job_.tag ? guardian_.output.add(job_.first_rank + index, STDERR_FILENO) : STDERR_FILENO;
  const bool piped = out >= 0 && err >= 0 && pipe2(report, O_CLOEXEC) == 0;
  const pid_t guardian = getpid();
  const bool placed = piped && !plan.places.empty();
  if (placed) topology::run_on(plan.places[static_cast<std::size_t>(index)]);
  const pid_t pid = piped ? fork() : -1;
  int error = errno;
  if (pid == 0) become_rank({index, guardian, out, err, report[1], argv.data(), envp.data()});
  if (placed) topology::run_on(everywhere_);
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
  guardian_.output.say(fmt::format("cannot execute {}: {}", plan.program, strerror(error)));
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

// Runs in the child, which may only make system calls.
void RankProcesses::become_rank(const Birth& birth) const {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != birth.guardian) _exit(1);  // it died before the line above
  ::signal(SIGPIPE, guardian_.on_broken_pipe);
  if (birth.out != STDOUT_FILENO) dup2(birth.out, STDOUT_FILENO);
  if (birth.err != STDERR_FILENO) dup2(birth.err, STDERR_FILENO);
  if (birth.index > 0) dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);  // what is typed goes to the first
  sigprocmask(SIG_SETMASK, &guardian_.rank_mask, nullptr);
  execve(guardian_.plan.program.c_str(), birth.argv, birth.envp);
  const int error = errno;
  [[maybe_unused]] const ssize_t written = write(birth.report, &error, sizeof error);
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
