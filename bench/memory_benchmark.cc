// What a communicator costs a rank in memory: shared or registered, and private (the heap's growth), after it is made,
// after a first small all-reduce, and after one of 1 MiB; beside what the headers say. By shm, the segments' own count
// of their pages, beside shm/lane.h. By TCP, none; each connection is a descriptor at either end, whose buffers are the
// kernel's. By verbs (where there is a device, and iproute2's `rdma` to ask the kernel with), registered bytes and
// queue pairs, beside verbs/layout.h: a pair for each peer, with kBlockBytes.
//   memory_benchmark [RANKS | TRANSPORT …]   ->  bytes a rank and communicator. Exits with 1 where something is not as
//   said.
#include <fmt/format.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "collectives/catalogue.h"
#include "selection/choose.h"
#include "topology/processors.h"
#include "transport/shm/ring_bytes.h"
#include "transport/verbs/device.h"
#include "transport/verbs/layout.h"
#include "tutti/communicator.h"

namespace {

using tutti::Communicator;

constexpr std::size_t kSmallBytes = 8, kLargeBytes = 1 << 20;
constexpr std::size_t kRowGrain = 64, kPageBytes = 4096;  // of scratch memory
constexpr int kMaxMeshed = 16;                            // ranks of verbs that all reach all others

std::size_t round_up(std::size_t bytes, std::size_t grain) { return (bytes + grain - 1) / grain * grain; }

// Of this process, which all ranks share.
struct Usage {
  double shared = 0, registered = 0, queue_pairs = 0, heap = 0, descriptors = 0;
};

// Adds up what `rdma` knows of this process: `field` of each `object`, or their number.
double ask_kernel(const char* object, const char* field) {
  FILE* const answer = popen((std::string("rdma -j resource show ") + object).c_str(), "r");
  std::string text;
  char piece[4096];
  while (const std::size_t bytes = std::fread(piece, 1, sizeof piece, answer)) text.append(piece, bytes);
  pclose(answer);
  double sum = 0;
  for (const auto& entry : nlohmann::json::parse(text))
    if (entry.contains("pid") && std::filesystem::exists(fmt::format("/proc/self/task/{}", entry.at("pid").get<int>())))
      sum += field == nullptr ? 1 : entry.at(field).get<double>();
  return sum;
}

Usage usage(bool of_verbs) {
  Usage now;
  if (of_verbs) {
    now.queue_pairs = ask_kernel("qp", nullptr);
    now.registered = ask_kernel("mr", "mrlen");
  }
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

struct Stage {
  const char* name;
  std::size_t bytes;
  bool symmetric;
};

// Lanes (of verbs: queue pairs) and rings of a whole communicator, by who talks to whom.
struct Shared {
  std::set<std::pair<int, int>> lanes, rings;  // writer and owner
  bool exact = true;                           // else no more than that
  std::map<int, std::size_t> scratch_bytes;    // by rank: of the call that needs most

  void add_call(const Communicator& world, const Stage& call, bool of_verbs) {
    const std::size_t bytes = call.bytes;
    const bool symmetric = call.symmetric;
    const std::size_t grain = of_verbs ? 1 : kPageBytes;
    exact = true;
    const int ranks = world.size();
    const std::size_t count = bytes / sizeof(float);
    const auto* entry = tutti::internal::find_algorithm(
        tutti::Collective::all_reduce, world.choose(tutti::Collective::all_reduce, count, tutti::DType::float32));
    // Over verbs no rank reads another's memory: nothing is copied for it.
    const bool crowded = ranks > tutti::internal::topology::usable_processors();
    const bool once = !symmetric && !of_verbs &&
                      tutti::internal::copies_once(tutti::Collective::all_reduce, bytes, ranks, ranks, crowded);
    const tutti::internal::Message message{.copies_once = once,
                                           .copies_inputs = once && tutti::internal::copies_inputs(bytes, crowded)};
    const auto schedules = tutti::internal::build_all(*entry, tutti::internal::Layout::of(ranks), message);
    for (int rank = 0; rank < ranks; ++rank) {
      const tutti::internal::Schedule& schedule = schedules[static_cast<std::size_t>(rank)];
      const std::size_t slice = bytes / schedule.slices;
      for (const tutti::internal::Step& step : schedule.steps) {
        if (step.kind != tutti::internal::StepKind::send) continue;
        lanes.insert({rank, step.peer});
        lanes.insert({step.peer, rank});
        // Symmetric memory that is large enough is read or written where it lies; of less, what finds no receive posted
        // goes through the ring.
        if (slice <= tutti::internal::shm::kInlineBytes || (symmetric && slice > tutti::internal::shm::kFragmentBytes))
          continue;
        rings.insert({rank, step.peer});
        exact =
            exact && !symmetric && slice < tutti::internal::shm::kReadFromBytes;  // longer ones may be read by the peer
      }
      std::size_t& scratch = scratch_bytes[rank];
      scratch = std::max(scratch, round_up(schedule.scratch_rows * round_up(slice, kRowGrain), grain));
    }
  }

  double bytes(int ranks, const std::string& transport) const {
    if (transport == "tcp") return 0;
    const bool crowded = ranks > sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t ring = tutti::internal::shm::ring_bytes_for(static_cast<std::size_t>(ranks), crowded).both_ways;
    std::size_t all = transport == "verbs" ? lanes.size() * tutti::internal::verbs::kBlockBytes
                                           : lanes.size() * tutti::internal::shm::kLaneHeadBytes + rings.size() * ring;
    for (const auto& [rank, scratch] : scratch_bytes) all += scratch;
    return static_cast<double>(all);
  }
};

constexpr Stage kStages[] = {{"made", 0, true},
                             {"8 B", kSmallBytes, true},
                             {"1 MiB, symmetric", kLargeBytes, true},
                             {"1 MiB", kLargeBytes, false}};

// Prints a row a stage; returns how many are not as said.
int measure(int ranks, const std::string& transport) {
  const int communicators = ranks <= 2 ? 32 : ranks <= 8 ? 8 : 2;
  const bool of_verbs = transport == "verbs";
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
      const Usage now = world.rank() == 0 ? usage(of_verbs) : Usage{};
      world.barrier();
      return now;
    };
    // Large messages may go from each to all, which takes gigabytes of registered memory for 64 ranks on one host.
    const std::span stages = std::span(kStages).first(of_verbs && ranks > kMaxMeshed ? 2 : std::size(kStages));
    // What the job itself needs, once: for these calls, and for what ranks tell each other when they split.
    for (const Stage& stage : stages) call(world, stage);
    static_cast<void>(world.split(0));
    look();
    const Usage before = look();
    for (int i = 0; i < communicators; ++i) made.push_back(world.split(0));
    Shared shared;
    for (const Stage& stage : stages) {
      for (Communicator& each : made) call(each, stage);
      const Usage now = look();
      if (world.rank() != 0) continue;
      if (stage.bytes > 0) shared.add_call(world, stage, of_verbs);
      const double each = ranks * communicators, said = shared.bytes(ranks, transport) / ranks;
      const double found = (of_verbs ? now.registered - before.registered : now.shared - before.shared) / each;
      const double pairs = (now.queue_pairs - before.queue_pairs) / each;
      const double pairs_said = of_verbs ? static_cast<double>(shared.lanes.size()) / ranks : 0;
      const bool exact = of_verbs || shared.exact;
      std::printf("%5d  %-5s  %-16s  %12.0f  %2s %11.0f  %11.2f  %7.2f  %10.0f  %9.1f\n", ranks, transport.c_str(),
                  stage.name, found, exact ? "" : "<=", said, pairs, pairs_said, (now.heap - before.heap) / each,
                  (now.descriptors - before.descriptors) / each);
      wrong += (exact ? found != said : found > said) || pairs != pairs_said;
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
  std::vector<std::string> transports;
  for (const std::string argument : std::span(argv, static_cast<std::size_t>(argc)).subspan(1)) {
    if (const int number = std::atoi(argument.c_str()); number > 0) {
      ranks.push_back(number);
    } else {
      transports.push_back(argument);
    }
  }
  if (ranks.empty()) ranks = {2, 8, 64};
  if (transports.empty()) {
    transports = {"shm", "tcp"};
    if (!tutti::internal::verbs::find_ports().empty() && std::system("rdma resource >/dev/null 2>&1") == 0)
      transports.emplace_back("verbs");
  }

  std::printf("# bytes a rank and communicator, from before it was made; %ld cores; all-reduce of float32\n",
              sysconf(_SC_NPROCESSORS_ONLN));
  std::printf(
      "ranks  over   after             shared, reg'd      as said  queue pairs  as said        heap  descriptors\n");
  int wrong = 0;
  try {
    for (const int each : ranks)
      for (const std::string& transport : transports) wrong += measure(each, transport);
  } catch (const tutti::Error& error) {
    std::fprintf(stderr, "memory_benchmark: %s\n", error.what());
    return 1;
  }
  if (wrong > 0) std::fprintf(stderr, "memory_benchmark: %d rows are not what lane.h and layout.h say\n", wrong);
  return wrong > 0;
}
