#include "runtime/fake_hosts.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace tutti::internal {
namespace {

using Pipe = std::array<int, 2>;

const std::array<std::string, kMadeUpHosts> kAddresses{"10.77.0.1", "10.77.0.2"};
constexpr std::uint16_t kPort = 29511;  // in a namespace of its own nobody else has it

// The other end of the pipe having ended without a word is no answer.
void tell(const Pipe& pipe) {
  if (::write(pipe[1], "x", 1) != 1) throw std::runtime_error("the other host is gone");
}
void hear(const Pipe& pipe) {
  char word = 0;
  if (::read(pipe[0], &word, 1) != 1) throw std::runtime_error("the other host did not come up");
}

void run_command(const std::string& command) {
  if (std::system(command.c_str()) != 0) throw std::runtime_error("failed: " + command);
}

void enter_new_namespace() {
  if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("no new network namespace");
  run_command("ip link set lo up");
}

// Host 0 makes the interfaces once host 1, of process `other`, has its namespace.
void connect_hosts(int host, pid_t other, const Pipe& entered, const Pipe& connected) {
  if (host == 0) {
    hear(entered);
    run_command("ip link add veth0 type veth peer name veth0 netns " + std::to_string(other));
    tell(connected);
  } else {
    tell(entered);
    hear(connected);
  }
  run_command("ip address add " + kAddresses[host] + "/24 dev veth0");
  run_command("ip link set veth0 up");
}

void run_ranks(const std::vector<int>& ranks, int size, const std::function<void(Communicator&)>& body,
               const Settings& common) {
  std::vector<std::thread> threads;
  for (int rank : ranks)
    threads.emplace_back([&, rank] {
      Settings settings = common;
      settings.rank = rank;
      settings.size = size;
      settings.master_address = kAddresses[0];
      settings.master_port = kPort;
      settings.secret = "of this test";
      settings.timeout = std::chrono::seconds(30);
      settings.join_timeout = std::chrono::seconds(30);
      try {
        Communicator world = Communicator::join(settings);
        body(world);
      } catch (const std::exception& error) {
        ADD_FAILURE() << "rank " << rank << ": " << error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
}

// Runs `work` in a process that does not outlive this one; it ends with status 0 if nothing failed.
pid_t in_process(const std::function<void()>& work) {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process != 0) return process;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  try {
    work();
  } catch (const std::exception& error) {
    ADD_FAILURE() << error.what();
  }
  std::fflush(nullptr);
  ::_exit(testing::Test::HasFailure() ? 1 : 0);
}

bool ended_well(pid_t process) {
  int status = -1;
  return process > 0 && ::waitpid(process, &status, 0) == process && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

bool can_make_hosts() {
  std::fflush(nullptr);
  const pid_t process = ::fork();
  if (process == 0)
    ::_exit(::unshare(CLONE_NEWNET) == 0 &&
                    std::system("ip link add veth0 type veth peer name veth1 >/dev/null 2>&1") == 0
                ? 0
                : 1);
  return ended_well(process);
}

bool run_on_hosts(const std::vector<std::vector<int>>& ranks, const std::function<void(Communicator&)>& body,
                  const Settings& common) {
  const int size = static_cast<int>(ranks[0].size() + ranks[1].size());
  Pipe entered{}, connected{};
  if (::pipe(entered.data()) != 0 || ::pipe(connected.data()) != 0) return false;
  std::array<pid_t, kMadeUpHosts> processes{};
  for (int host : {1, 0})
    processes[host] = in_process([&] {
      // Only who is to read keeps the reading end, so that a host which dies is noticed.
      ::close(host == 0 ? entered[1] : entered[0]);
      ::close(host == 0 ? connected[0] : connected[1]);
      enter_new_namespace();
      connect_hosts(host, processes[1], entered, connected);
      run_ranks(ranks[host], size, body, common);
    });
  for (const Pipe& pipe : {entered, connected})
    for (int end : pipe) ::close(end);
  const bool first = ended_well(processes[0]), second = ended_well(processes[1]);
  return first && second;
}

bool run_in_namespace(const std::string& command, const std::function<void()>& work) {
  return ended_well(in_process([&] {
    if (::unshare(CLONE_NEWNET) != 0) throw std::runtime_error("no new network namespace");
    run_command(command);
    work();
  }));
}

std::size_t bytes_sent_by_host() {
  std::ifstream file("/proc/self/net/dev");
  for (std::string line; std::getline(file, line);) {
    const std::size_t name = line.find("veth0:");
    if (name == std::string::npos) continue;
    std::istringstream numbers(line.substr(name + 6));
    std::size_t number = 0;
    for (int column = 0; column < 9; ++column) numbers >> number;  // the ninth is what was transmitted
    return number;
  }
  throw std::runtime_error("there is no interface veth0");
}

}  // namespace tutti::internal
