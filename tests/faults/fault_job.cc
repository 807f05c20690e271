#include "faults/fault_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <utility>

#include "net/free_port.h"

namespace tutti::internal {
namespace {

void run_in(int space, const std::string& command) {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process == 0) ::_exit(::setns(space, CLONE_NEWNET) == 0 && std::system(command.c_str()) == 0 ? 0 : 1);
  int status = -1;
  if (::waitpid(process, &status, 0) != process || status != 0) throw std::runtime_error("failed: " + command);
}

std::string address_of(int host) { return "10.78.0." + std::to_string(host + 1); }

}  // namespace

// --- two hosts

bool TwoHosts::can_be_made() {
  try {
    const TwoHosts made;
    return true;
  } catch (const std::runtime_error&) {
    return false;
  }
}

TwoHosts::TwoHosts() {
  for (int host = 0; host < 2; ++host) {
    int entered[2];
    if (::pipe2(entered, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
    std::fflush(nullptr);
    keepers_[host] = ::fork();
    if (keepers_[host] == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::unshare(CLONE_NEWNET) != 0 || ::write(entered[1], "x", 1) != 1) ::_exit(1);
      while (true) ::pause();
    }
    ::close(entered[1]);
    char word;
    const bool is_made = ::read(entered[0], &word, 1) == 1;
    ::close(entered[0]);
    if (!is_made) throw std::runtime_error("no new network namespace");
    spaces_[host] = ::open(("/proc/" + std::to_string(keepers_[host]) + "/ns/net").c_str(), O_RDONLY | O_CLOEXEC);
  }
  run_in(spaces_[0],
         "ip link add veth0 type veth peer name veth0 netns " + std::to_string(keepers_[1]) + " 2>/dev/null");
  for (int host = 0; host < 2; ++host)
    run_in(spaces_[host],
           "ip link set lo up && ip address add " + address_of(host) + "/24 dev veth0 && ip link set veth0 up");
}

TwoHosts::~TwoHosts() {
  for (int host = 0; host < 2; ++host) {
    if (spaces_[host] >= 0) ::close(spaces_[host]);
    if (keepers_[host] <= 0) continue;
    ::kill(keepers_[host], SIGKILL);
    ::waitpid(keepers_[host], nullptr, 0);
  }
}

void TwoHosts::take_down(int host) const { run_in(spaces_[host], "ip link set veth0 down"); }

// To an address that no interface has.
void TwoHosts::silence(int host) const {
  run_in(spaces_[host],
         "ip neighbour replace " + address_of(1 - host) + " lladdr 02:00:00:00:00:01 nud permanent dev veth0");
}

void TwoHosts::restore() const {
  for (int host = 0; host < 2; ++host)
    run_in(spaces_[host],
           "ip link set veth0 up; ip neighbour delete " + address_of(1 - host) + " dev veth0 2>/dev/null; true");
}

// --- the job

FaultJob::FaultJob(const FaultPlan& plan, const TwoHosts* hosts) : ranks_(static_cast<std::size_t>(plan.ranks)) {
  if (::pipe2(input_, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  const int port = hosts != nullptr ? 20'000 + static_cast<int>(plan.seed % 10'000) : free_port();
  for (int number = 0; number < plan.ranks; ++number) start(number, plan, hosts, port);
}

// Each rank leads a process group, to which its forked child belongs too.
void FaultJob::start(int number, const FaultPlan& plan, const TwoHosts* hosts, int port) {
  const auto index = static_cast<std::size_t>(number);
  const auto* const blow = plan.blow_at(number);
  const bool forks = blow != nullptr && blow->fault == Fault::kill_forked;
  const std::string words[] = {FAULT_RANK,
                               std::to_string(number),
                               std::to_string(plan.ranks),
                               hosts != nullptr ? TwoHosts::kMeetAt : "127.0.0.1",
                               std::to_string(port),
                               hosts != nullptr ? "auto" : plan.wire,
                               std::to_string(plan.seed),
                               plan.is_without_zero ? "without_zero" : "whole",
                               forks ? "fork" : "alone",
                               plan.then[index],
                               std::to_string(plan.silence.count())};
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  int output[2];
  if (::pipe2(output, O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process == 0) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (hosts != nullptr && ::setns(hosts->space_of(plan.hosts[index]), CLONE_NEWNET) != 0) ::_exit(126);
    ::dup2(input_[0], STDIN_FILENO);
    ::dup2(output[1], STDOUT_FILENO);
    ::execv(FAULT_RANK, pointers.data());
    ::_exit(127);
  }
  ::setpgid(process, process);
  ::close(output[1]);
  ::fcntl(output[0], F_SETFL, O_NONBLOCK);
  ranks_[index].process = process;
  ranks_[index].said = output[0];
}

FaultJob::~FaultJob() {
  for (Rank& rank : ranks_) {
    ::kill(-rank.process, SIGKILL);
    if (!rank.status) ::waitpid(rank.process, nullptr, 0);
    if (rank.said >= 0) ::close(rank.said);
  }
  for (const int fd : input_)
    if (fd >= 0) ::close(fd);
}

bool FaultJob::all(const std::function<bool(const Rank&)>& is_so, const std::function<bool(int)>& of) const {
  for (std::size_t number = 0; number < ranks_.size(); ++number)
    if (of(static_cast<int>(number)) && !is_so(ranks_[number])) return false;
  return true;
}

// The number of a process that has ended is its own until ~FaultJob() or listen() has waited for it.
void FaultJob::signal(int number, int signal) {
  const Rank& one = rank(number);
  if (one.status) return;
  ::kill(one.process, signal);
  // What is done to another rank next comes when all threads stand still: else this one may tell some of the others.
  siginfo_t none{};
  if (signal == SIGSTOP) ::waitid(P_PID, static_cast<id_t>(one.process), &none, WSTOPPED | WEXITED | WNOWAIT);
}

void FaultJob::close_input() {
  for (int& fd : input_) ::close(std::exchange(fd, -1));
}

bool FaultJob::listen(Clock::time_point until, const std::function<bool()>& done) {
  while (true) {
    std::vector<pollfd> readable;
    for (Rank& rank : ranks_) {
      read(rank);
      int status = 0;
      if (!rank.status && ::waitpid(rank.process, &status, WNOHANG) == rank.process) {
        read(rank);
        rank.status = status;
      }
      if (rank.said >= 0 && !rank.status) readable.push_back({rank.said, POLLIN, 0});
    }
    if (done()) return true;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return false;
    ::poll(readable.data(), readable.size(), static_cast<int>(std::min<long>(left, 20)));
  }
}

void FaultJob::read(Rank& rank) {
  char text[4096];
  while (rank.said >= 0) {
    const ssize_t got = ::read(rank.said, text, sizeof text);
    if (got < 0) return;
    if (got == 0) ::close(std::exchange(rank.said, -1));
    rank.line.append(text, static_cast<std::size_t>(got));
    for (auto end = rank.line.find('\n'); end != std::string::npos; end = rank.line.find('\n')) {
      take(rank, rank.line.substr(0, end));
      rank.line.erase(0, end + 1);
    }
  }
}

void FaultJob::take(Rank& rank, const std::string& line) {
  std::istringstream words(line);
  std::string kind;
  words >> kind;
  std::int64_t ns = 0;
  const auto read_time = [&] {
    words >> ns;
    return Clock::time_point(Clock::duration(ns));
  };
  if (kind == "ready") rank.is_ready = true;
  if (kind == "wrong") rank.wrong.push_back(line);
  if (kind == "heard") rank.heard = read_time();
  if (kind == "calls") words >> rank.calls;
  if (kind == "went_on") rank.went_on = line.substr(kind.size() + 1);
  if (kind == "refused") rank.refused = line.substr(kind.size() + 1);
  if (kind != "error") return;
  Story story{.when = read_time(), .peer = -1};
  words >> story.code >> story.peer >> std::ws;
  std::getline(words, story.text);
  rank.story = story;
}

}  // namespace tutti::internal
