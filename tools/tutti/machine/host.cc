#include "machine/host.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include "command.h"
#include "topology/machine.h"
#include "tutti/error.h"

namespace tutti::internal::tools {
namespace {

using topology::Machine;
using topology::Processors;

constexpr long kNone = std::numeric_limits<long>::max();
constexpr long kMaxRanks = 65536;         // a root is 16 bits in a call's tag
constexpr long kTasksPerRank = 2;         // the program and the library's control thread
constexpr long kKilobytesPerRank = 4096;  // the private memory of the smallest program that has joined a job

long resource_limit(__rlimit_resource resource) {
  rlimit limit{};
  if (getrlimit(resource, &limit) != 0 || limit.rlim_max == RLIM_INFINITY) return kNone;
  return static_cast<long>(limit.rlim_max);
}

// The number that a one-number file holds; kNone for "max", for no such file and for anything else.
long number_in(const std::string& path) {
  std::ifstream file(path);
  long number = 0;
  return file >> number ? number : kNone;
}

long available_memory_kb() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;) {
    long kilobytes = 0;
    if (word == "MemAvailable:" && file >> kilobytes) return kilobytes;
  }
  return kNone;
}

// The most ranks that fit here, and the limit that says so.
struct Room {
  long ranks;
  const char* limit;
};

Room room_for_ranks() {
  Room room{kMaxRanks, "the most that a communicator can have"};
  const auto at_most = [&room](long ranks, const char* limit) {
    if (ranks < room.ranks) room = {ranks, limit};
  };
  // Rank 0 keeps a connection to every other.
  at_most(resource_limit(RLIMIT_NOFILE), "the limit on open files (ulimit -n)");
  at_most(resource_limit(RLIMIT_NPROC) / kTasksPerRank, "the limit on processes (ulimit -u)");
  at_most(number_in("/proc/sys/kernel/pid_max") / kTasksPerRank, "the kernel's limit on processes (kernel.pid_max)");
  at_most(number_in("/sys/fs/cgroup/pids.max") / kTasksPerRank, "this container's limit on processes (pids.max)");
  at_most(available_memory_kb() / kKilobytesPerRank, "the memory that is available, at 4 MiB a rank");
  return room;
}

}  // namespace

void require_room(long ranks) {
  if (ranks < 1) throw UsageError(fmt::format("a job of {} ranks is none; it has at least 1", ranks));
  const Room room = room_for_ranks();
  if (ranks <= room.ranks) return;
  throw UsageError(
      fmt::format("{} ranks do not fit on this host; at most {} do, because of {}", ranks, room.ranks, room.limit));
}

std::vector<Processors> usable_cores() {
  auto cores = Machine::here().cores(topology::allowed_processors());
  if (cores.empty()) throw std::runtime_error("hwloc finds no core that this process may use");
  return cores;
}

std::vector<Processors> places_for(int ranks) {
  auto places = Machine::here().place(topology::allowed_processors(), ranks);
  if (!places.empty()) return places;
  const auto cores = usable_cores();
  for (std::size_t i = 0; i < static_cast<std::size_t>(ranks); ++i) places.push_back(cores[i % cores.size()]);
  return places;
}

bool has_core_for_each(int ranks) try {
  const Machine machine = Machine::here();
  const Processors allowed = topology::allowed_processors();
  return ranks > 1 && ranks <= topology::usable_processors() && allowed == machine.processors() &&
         static_cast<std::size_t>(ranks) <= machine.cores(allowed).size();
} catch (const Error&) {
  return false;  // without hwloc's help the system places them
}

}  // namespace tutti::internal::tools
