// What a communicator costs a rank in memory: shared (the segments' own count of their pages) and private (the heap's
// growth), after it is made, after a first small all-reduce, and after one of 1 MiB; beside what shm/lane.h says. By
// TCP there is no shared memory; each connection is a descriptor at either end, whose buffers are the kernel's.
//   memory_benchmark [RANKS…]   ->  bytes a rank and communicator. Exits with 1 where shared memory is not as said.
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "collectives/catalogue.h"
#include "transport/shm/lane.h"
#include "tutti/communicator.h"

namespace {

using tutti::Communicator;

constexpr std::size_t kSmallBytes = 8, kLargeBytes = 1 << 20;

// Of this process, which all ranks share.
struct Usage {
  double shared = 0, heap = 0, descriptors = 0;
};

Usage usage() {
  Usage now;
  std::set<ino_t> seen;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the listing's own
    const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
    struct stat facts {};
    if (gone || stat(entry.path().c_str(), &facts) != 0) continue;
    now.descriptors += 1;
    if (target.starts_with("/memfd:tutti") && seen.insert(facts.st_ino).second)
      now.shared += static_cast<double>(facts.st_blocks) * 512;
  }
  const auto heap = mallinfo2();
  now.heap = static_cast<double>(heap.uordblks + heap.hblkhd);
  return now;
}

// Lanes and rings of a whole communicator, by who talks to whom.
struct Shared {
  std::set<std::pair<int, int>> lanes, rings;  // writer and owner
  bool exact = true;                           // else no more than that
  std::map<int, std::size_t> scratch_bytes;    // by rank: of the call that needs most

  void add_call(const Communicator& world, std::size_t bytes, bool symmetric) {
    exact = true;
    const int ranks = world.size();
    const std::size_t count = bytes / sizeof(float);
    const auto* entry = tutti::find_algorithm(
        tutti::Collective::all_reduce, world.choose(tutti::Collective::all_reduce, count, tutti::DType::float32));
    const auto schedules = tutti::build_all(*entry, tutti::Layout::of(ranks), {});
    for (int rank = 0; rank < ranks; ++rank) {
      const tutti::Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
      const std::size_t slice = bytes / schedule.slices;
      for (const tutti::Step& step : schedule.steps) {
        if (step.kind != tutti::StepKind::send) continue;
        lanes.insert({rank, step.peer});
        lanes.insert({step.peer, rank});
        // Symmetric memory that is large enough is read or written where it lies; of less, what finds no receive posted
        // goes through the ring.
        if (slice <= tutti::shm::kInlineBytes || (symmetric && slice > tutti::shm::kFragmentBytes)) continue;
        rings.insert({rank, step.peer});
        exact = exact && !symmetric;
      }
      std::size_t& scratch = scratch_bytes[rank];
      scratch = std::max(scratch, (schedule.scratch_rows * slice + 4095) / 4096 * 4096);
    }
  }

  double bytes(int ranks) const {
    const bool crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t ring = tutti::shm::ring_bytes_for(static_cast<std::size_t>(ranks), crowded);
    std::size_t all = lanes.size() * tutti::shm::kLaneHeadBytes + rings.size() * ring;
    for (const auto& [rank, scratch] : scratch_bytes) all += scratch;
    return static_cast<double>(all);
  }
};

struct Stage {
  const char* name;
  std::size_t bytes;
  bool symmetric;
};
constexpr Stage kStages[] = {{"made", 0, true},
                             {"8 B", kSmallBytes, true},
                             {"1 MiB, symmetric", kLargeBytes, true},
                             {"1 MiB", kLargeBytes, false}};

// Prints a row a stage; returns how many are not as said.
int measure(int ranks, const std::string& transport) {
  const int communicators = ranks <= 2 ? 32 : ranks <= 8 ? 8 : 2;
  int wrong = 0;
  const auto body = [&](Communicator& world) {
    const auto symmetric = world.allocate(kLargeBytes);
    std::vector<float> own(kLargeBytes / sizeof(float), 1.0f);
    std::vector<Communicator> made;
    made.reserve(static_cast<std::size_t>(communicators));
    const auto call = [&](Communicator& by, const Stage& stage) {
      float* const values = stage.symmetric ? symmetric.as<float>().data() : own.data();
      if (stage.bytes > 0) by.all_reduce(std::span(values, stage.bytes / sizeof(float)), tutti::Op::max);
    };
    const auto look = [&] {
      world.barrier();
      const Usage now = world.rank() == 0 ? usage() : Usage{};
      world.barrier();
      return now;
    };
    for (const Stage& stage : kStages) call(world, stage);  // what the job itself needs, once
    look();
    const Usage before = look();
    for (int i = 0; i < communicators; ++i) made.push_back(world.split(0));
    Shared shared;
    for (const Stage& stage : kStages) {
      for (Communicator& each : made) call(each, stage);
      const Usage now = look();
      if (world.rank() != 0) continue;
      if (stage.bytes > 0) shared.add_call(world, stage.bytes, stage.symmetric);
      const double each = ranks * communicators, said = transport == "shm" ? shared.bytes(ranks) / ranks : 0;
      const double found = (now.shared - before.shared) / each;
      std::printf("%5d  %-5s  %-16s  %12.0f  %2s %11.0f  %10.0f  %9.1f\n", ranks, transport.c_str(), stage.name, found,
                  shared.exact ? "" : "<=", said, (now.heap - before.heap) / each,
                  (now.descriptors - before.descriptors) / each);
      wrong += shared.exact ? found != said : found > said;
    }
  };
  Communicator::run_threads(ranks, body, transport);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  std::vector<int> ranks;
  for (int i = 1; i < argc; ++i) ranks.push_back(std::atoi(argv[i]));
  if (ranks.empty()) ranks = {2, 8, 64};

  std::printf("# bytes a rank and communicator, from before it was made; %ld cores; all-reduce of float32\n",
              sysconf(_SC_NPROCESSORS_ONLN));
  std::printf("ranks  over   after             shared         as said      heap        descriptors\n");
  int wrong = 0;
  try {
    for (const int each : ranks)
      for (const char* transport : {"shm", "tcp"}) wrong += measure(each, transport);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "memory_benchmark: %s\n", error.what());
    return 1;
  }
  if (wrong > 0) std::fprintf(stderr, "memory_benchmark: %d times shared memory is not what lane.h says\n", wrong);
  return wrong > 0;
}
