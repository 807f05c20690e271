#include "run/launch.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "command.h"
#include "machine/host.h"
#include "net/network.h"
#include "run/descendants.h"
#include "run/guardian.h"
#include "run/output_writer.h"
#include "run/reserved_port.h"

namespace tutti::internal::tools {
namespace {

// The path that a shell would run for `name`. Throws UsageError when there is none.
std::string find_program(const std::string& name) {
  const auto executable = [](const std::string& path) {
    struct stat about {};
    return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) {
    if (executable(name)) return name;
    throw UsageError(access(name.c_str(), F_OK) == 0 ? fmt::format("{} is not an executable file", name)
                                                     : fmt::format("there is no program {}", name));
  }
  const char* path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string candidate = (folder.empty() ? "." : folder) + "/" + name;
    if (executable(candidate)) return candidate;
  }
  throw UsageError(fmt::format("there is no program {0} in PATH{1}", name,
                               executable("./" + name) ? fmt::format("; did you mean ./{}?", name) : ""));
}

std::string random_hex(std::size_t bits) {
  std::vector<unsigned char> bytes(bits / 8);
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw std::runtime_error("the system gives no random numbers");
  std::string hex;
  for (const unsigned char byte : bytes) hex += fmt::format("{:02x}", byte);
  return hex;
}

std::string endpoint(const std::string& address, int port) {
  const bool ipv6 = address.find(':') != std::string::npos;
  return ipv6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

// Stays with the guardian until it has ended, and passes signals on to it. Returns its exit status.
int accompany(const Job& job, pid_t guardian, int pipe, const sigset_t& awaited) {
  while (true) {
    siginfo_t info;
    const int signal = sigwaitinfo(&awaited, &info);
    if (signal == SIGCHLD) {
      int status = 0;
      if (waitpid(guardian, &status, WNOHANG) != guardian) continue;
      if (WIFEXITED(status)) return WEXITSTATUS(status);
      end_descendants();
      say_at_the_end(
          fmt::format("{}: the guardian of the ranks was killed by signal {} ({}), so they were killed too\n", job.name,
                      WTERMSIG(status), strsignal(WTERMSIG(status))));
      return 1;
    }
    if (signal < 0) continue;
    // What a terminal sends, it sends to the ranks as well.
    const auto message = static_cast<unsigned char>(signal | (info.si_code == SI_KERNEL ? kAlreadyDelivered : 0));
    [[maybe_unused]] const ssize_t written = write(pipe, &message, 1);
  }
}

// SIGCHLD, and the signals that end a job: all but those that are ignored on purpose, by nohup say, or by a shell for
// what runs in the background.
sigset_t awaited_signals() {
  sigset_t awaited;
  sigemptyset(&awaited);
  sigaddset(&awaited, SIGCHLD);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) sigaddset(&awaited, signal);
  }
  return awaited;
}

}  // namespace

int launch(const Job& job) {
  if (job.argv.empty()) throw UsageError("no program was given");
  Plan plan;
  plan.program = find_program(job.argv.front());
  require_room(job.ranks);
  plan.size = job.size == 0 ? job.ranks : job.size;
  std::optional<ReservedPort> reserved;
  if (job.master_port == 0) reserved.emplace();
  std::string address = job.master_address;
  if (address.empty() && internal::has_loopback()) address = internal::loopback().address();
  plan.master = endpoint(address, reserved ? reserved->port() : job.master_port);
  if (job.make_secret && std::getenv("TUTTI_SECRET") == nullptr && std::getenv("TUTTI_SECRET_FILE") == nullptr) {
    plan.secret = random_hex(256);
  }
  plan.reports = "tutti-" + random_hex(128);
  if (job.bind == Bind::core || (job.bind == Bind::automatic && has_core_for_each(job.ranks))) {
    plan.places = places_for(job.ranks);
  }

  ::signal(SIGCHLD, SIG_DFL);  // who started this may have ignored it: then the system would tell of no end
  const sigset_t awaited = awaited_signals();
  sigset_t before;
  sigprocmask(SIG_BLOCK, &awaited, &before);
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // for the ranks, should the guardian be killed
  int pipe[2];
  if (pipe2(pipe, O_CLOEXEC) != 0) throw std::runtime_error(fmt::format("cannot make a pipe: {}", strerror(errno)));
  std::fflush(nullptr);
  const pid_t guardian = fork();
  if (guardian < 0) throw std::runtime_error(fmt::format("cannot start a process: {}", strerror(errno)));
  if (guardian == 0) {
    close(pipe[1]);
    _exit(guard(job, plan, pipe[0], awaited, before));
  }
  close(pipe[0]);
  const sighandler_t on_broken_pipe = ::signal(SIGPIPE, SIG_IGN);  // a signal may come when the guardian has just ended
  const int status = accompany(job, guardian, pipe[1], awaited);
  ::signal(SIGPIPE, on_broken_pipe);
  close(pipe[1]);
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return status;
}

bool is_launcher(std::optional<int> ranks) { return ranks && std::getenv("TUTTI_RANK") == nullptr; }

std::optional<int> launch_self(const std::string& name, std::optional<int> ranks, Bind bind) {
  if (!is_launcher(ranks)) return std::nullopt;
  Job job;
  job.name = name;
  std::ifstream command_line("/proc/self/cmdline");
  for (std::string argument; std::getline(command_line, argument, '\0');) job.argv.push_back(argument);
  job.argv.front() = "/proc/self/exe";
  job.ranks = *ranks;
  job.bind = bind;
  job.pass_on_status_2 = true;
  return launch(job);
}

}  // namespace tutti::internal::tools
