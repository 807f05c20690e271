#include "host.h"

#include <fmt/format.h>
#include <hwloc.h>
#include <hwloc/glibc-sched.h>
#include <sys/resource.h>

#include <fstream>
#include <limits>
#include <stdexcept>
#include <string>

#include "command.h"

namespace tutti::tools {
namespace {

constexpr long kNone = std::numeric_limits<long>::max();
constexpr long kMostRanks = 65536;        // a root is 16 bits in a call's tag
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
  Room room{kMostRanks, "the most that a communicator can have"};
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

std::vector<cpu_set_t> usable_cores() {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0 || hwloc_topology_load(topology) != 0) {
    throw std::runtime_error("hwloc cannot read this machine's topology");
  }
  std::vector<cpu_set_t> cores;
  const hwloc_const_bitmap_t allowed = hwloc_topology_get_allowed_cpuset(topology);
  hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  hwloc_get_cpubind(topology, mine, HWLOC_CPUBIND_PROCESS);
  hwloc_bitmap_and(mine, mine, allowed);
  hwloc_obj_t core = nullptr;
  while ((core = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_CORE, core)) != nullptr) {
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    hwloc_bitmap_and(usable, core->cpuset, mine);
    cpu_set_t set;
    if (!hwloc_bitmap_iszero(usable) && hwloc_cpuset_to_glibc_sched_affinity(topology, usable, &set, sizeof set) == 0) {
      cores.push_back(set);
    }
    hwloc_bitmap_free(usable);
  }
  hwloc_bitmap_free(mine);
  hwloc_topology_destroy(topology);
  if (cores.empty()) throw std::runtime_error("hwloc finds no core that this process may use");
  return cores;
}

}  // namespace tutti::tools
