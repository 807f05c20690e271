#include "tools/run/kill_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

std::vector<std::string> lines_of_file(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream file("/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children");
  std::vector<pid_t> children;
  for (pid_t child; file >> child;) children.push_back(child);
  return children;
}

std::string network_of(const std::string& process) {
  std::error_code none;
  return fs::read_symlink("/proc/" + process + "/ns/net", none);
}

std::vector<pid_t> processes_of_this_network() {
  const std::string own = network_of("self");
  std::vector<pid_t> found;
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string number = entry.path().filename();
    if (network_of(number) != own) continue;
    const pid_t process = std::atoi(number.c_str());
    if (process > 0 && process != ::getpid()) found.push_back(process);
  }
  return found;
}

bool has_become_zombie(pid_t child) {
  siginfo_t about{};
  return ::waitid(P_PID, static_cast<id_t>(child), &about, WEXITED | WNOHANG | WNOWAIT) != 0 || about.si_pid != 0;
}

bool lies_in_tmp(const std::string& path) { return path.starts_with("/tmp/"); }

}  // namespace

namespace enclosure {

bool enter() {
  if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) return false;
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      ::mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) != 0)
    return false;
  const bool has_programs = lies_in_tmp(TUTTI_PROGRAM) || lies_in_tmp(fs::current_path());
  if (!has_programs && ::mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) != 0) return false;
  return std::system("ip link set lo up") == 0;
}

Contents look() {
  Contents contents;
  std::vector<pid_t> processes = processes_of_this_network();
  for (const pid_t process : processes)
    for (const std::string& name : lines_of_file("/proc/" + std::to_string(process) + "/comm"))
      contents.processes.push_back(name);
  processes.push_back(::getpid());
  for (const pid_t process : processes)
    for (const std::string& line : lines_of_file("/proc/" + std::to_string(process) + "/maps"))
      if (line.find("memfd:") != std::string::npos) contents.memory.push_back(line);
  for (const std::string& line : lines_of_file("/proc/self/net/unix"))
    if (!line.starts_with("Num")) contents.sockets.push_back(line);
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"})
    for (const std::string& line : lines_of_file(table)) {
      std::istringstream words(line);
      std::string number, here, there, state;
      words >> number >> here >> there >> state;
      if (state == "0A") contents.ports.push_back(here);  // it listens
    }
  for (const char* folder : {"/dev/shm", "/tmp"})
    if (std::string(folder) != "/tmp" || !lies_in_tmp(TUTTI_PROGRAM))
      for (const auto& entry : fs::directory_iterator(folder)) contents.files.push_back(entry.path());
  return contents;
}

std::string Contents::text() const {
  std::string text;
  for (const auto& list : {processes, sockets, ports, files, memory})
    for (const std::string& one : list) text += "\n  " + one;
  return text;
}

}  // namespace enclosure

KillJob::KillJob(const KillPlan& plan) : plan_(plan) {
  open_outlet(plan.outlet);
  started_ = Clock::now();
  // Each in a session of its own, and so a process group. Nodes that have not met yet wait for each other until then.
  const std::string variables = "TUTTI_JOIN_TIMEOUT=4 TUTTI_SECRET=none TUTTI_TRANSPORT=" + plan.wire;
  for (int node = 0; node < plan.nodes; ++node)
    nodes_.push_back({.launcher = start("exec env " + variables + " setsid " + plan.command(KILLED_RANK, node) +
                                        " </dev/null >&9 2>&9")});
  ::close(9);
}

// A shell knows descriptors of one digit only.
void KillJob::open_outlet(Outlet outlet) {
  int ends[2] = {-1, -1};
  if (outlet == Outlet::file)
    ends[1] = ::open("/dev/shm", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
  else if (::pipe2(ends, O_CLOEXEC) != 0)
    ends[1] = -1;
  if (ends[1] < 0 || ::dup2(ends[1], 9) != 9) throw std::runtime_error("no output for the job");
  ::close(ends[1]);
  reader_ = ends[0];
  if (outlet == Outlet::abandoned_pipe) ::close(std::exchange(reader_, -1));
}

KillJob::~KillJob() {
  for (const auto give_up = Clock::now() + 5s; has_children_ && Clock::now() < give_up;
       std::this_thread::sleep_for(1ms)) {
    for (const pid_t process : processes_of_this_network()) ::kill(process, SIGKILL);
    reap();
  }
  if (reader_ >= 0) ::close(reader_);
}

void KillJob::strike() {
  for (const KillPlan::Blow& blow : plan_.blows) {
    std::this_thread::sleep_until(started_ + blow.at);
    if (&blow == &plan_.blows.back()) {
      seen_ = enclosure::look();
      pollfd output{reader_, POLLIN, 0};
      is_output_full_ = reader_ >= 0 && ::poll(&output, 1, 0) == 1;
    }
    strike(blow);
  }
  struck_ = Clock::now();
}

// None of these numbers can be another process's meanwhile: whoever has ended is a zombie until reap(), except for the
// ranks and a guardian whose parent lives, and these are looked up just before.
void KillJob::strike(const KillPlan::Blow& blow) {
  Node& node = nodes_[static_cast<std::size_t>(blow.rank) % nodes_.size()];
  const bool is_of_guardian = blow.victim != Victim::launcher && blow.victim != Victim::group;
  const pid_t guardian = is_of_guardian ? find_guardian(node) : 0;
  if (blow.victim == Victim::launcher || blow.victim == Victim::launcher_and_guardian)
    ::kill(node.launcher, blow.signal);
  if (blow.victim == Victim::group)
    while (::kill(-node.launcher, blow.signal) != 0 && !has_become_zombie(node.launcher))
      std::this_thread::sleep_for(100us);
  if (guardian == 0) return;
  if (blow.victim != Victim::rank) ::kill(guardian, blow.signal);
  const auto ranks = children_of(guardian);
  if (blow.victim == Victim::rank && !ranks.empty())
    ::kill(ranks[static_cast<std::size_t>(blow.rank) % ranks.size()], blow.signal);
}

// It is waited for, as long as the launcher lives. 0: there is none.
pid_t KillJob::find_guardian(Node& node) {
  while (node.guardian == 0) {
    const auto children = children_of(node.launcher);
    if (!children.empty()) node.guardian = children.front();
    if (has_become_zombie(node.launcher)) break;
  }
  const auto of_launcher = children_of(node.launcher), adopted = children_of(::getpid());
  const bool is_there = std::ranges::count(of_launcher, node.guardian) + std::ranges::count(adopted, node.guardian) > 0;
  return is_there ? node.guardian : 0;
}

void KillJob::reap() {
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, WNOHANG);
    for (Node& node : nodes_)
      if (ended == node.launcher) node.status = status;
    has_children_ = ended >= 0;
    if (ended <= 0) return;
  }
}

enclosure::Contents KillJob::await_end(std::chrono::milliseconds limit, bool but_children) {
  while (true) {
    reap();
    auto contents = enclosure::look();
    ended_ = Clock::now();
    const bool only_children =
        std::ranges::all_of(contents.processes, [](const std::string& name) { return name == "child_of_rank"; });
    const bool have_ended = std::ranges::none_of(nodes_, [](const Node& node) { return node.status == -1; });
    const bool is_over =
        has_children_ ? but_children && have_ended && only_children && !contents.processes.empty() : contents.empty();
    if (is_over || ended_ > struck_ + limit) return contents;
    std::this_thread::sleep_for(10ms);
  }
}

}  // namespace tutti::internal::tools
