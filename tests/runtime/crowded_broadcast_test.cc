// Long broadcasts by ranks that share processors: near peers read the messages where they lie, and far peers get
// copies.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "brief.h"
#include "memory/between_cores.h"
#include "runtime/ranks.h"
#include "topology/processors.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kCrowdedCount = (4 << 20) / sizeof(std::uint32_t) + 77;  // of more than 4 MiB, in uneven pieces

enum class CrowdedMemory { symmetric, ordinary, mixed };

// The values of a rank, in symmetric or in ordinary memory. All ranks make theirs at the same time.
class CrowdedValues {
 public:
  CrowdedValues(Communicator& world, bool is_symmetric)
      : symmetric_(world.allocate(kCrowdedCount * sizeof(std::uint32_t))),
        ordinary_(is_symmetric ? 0 : kCrowdedCount) {}
  std::span<std::uint32_t> all() {
    if (!ordinary_.empty()) return ordinary_;
    return {static_cast<std::uint32_t*>(symmetric_.data()), kCrowdedCount};
  }

 private:
  Memory symmetric_;  // all ranks have to ask for it, if one does
  std::vector<std::uint32_t> ordinary_;
};

void fill_from(std::span<std::uint32_t> values, std::uint32_t first) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<std::uint32_t>(i);
}
bool count_from(std::span<const std::uint32_t> values, std::uint32_t first) {
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] != first + static_cast<std::uint32_t>(i)) return false;
  return true;
}

// Each call has other values than the one before. Each rank overwrites those of the last call as soon as it has ended.
void broadcasts(Communicator& world, CrowdedMemory kind, Algorithm algorithm) {
  const bool is_symmetric = kind == CrowdedMemory::symmetric || (kind == CrowdedMemory::mixed && world.rank() % 2 == 0);
  CrowdedValues in(world, is_symmetric), out(world, is_symmetric);
  for (std::uint32_t call = 0; call < 4; ++call) {
    const int root = call == 3 ? world.size() - 1 : 0;
    const bool in_place = call % 2 == 0;
    const std::uint32_t first = 1'000'000 * call;
    std::ranges::fill(out.all(), 0xeeeeeeee);
    if (world.rank() == root) fill_from(in_place ? out.all() : in.all(), first);
    const void* const from = in_place ? out.all().data() : in.all().data();
    world.broadcast(from, out.all().data(), kCrowdedCount, DType::uint32, root, {.algorithm = algorithm});
    EXPECT_TRUE(count_from(out.all(), first)) << "call " << call << ", rank " << world.rank();
    if (world.rank() == root && !in_place) {
      EXPECT_TRUE(count_from(in.all(), first)) << "call " << call;
    }
  }
}

class CrowdedBroadcast : public testing::TestWithParam<bool> {
 protected:
  // Every line counts as one of a far core, or of a near one.
  void SetUp() override {
    BetweenCores cores = ours_;
    cores.far_ns = GetParam() ? -1'000'000 : 1'000'000'000;
    assume_between_cores(cores);
  }
  void TearDown() override { assume_between_cores(ours_); }

 private:
  const BetweenCores ours_ = between_cores();
};

TEST_P(CrowdedBroadcast, OfMoreThan4MiBReachesAll) {
  Settings settings;
  settings.transport = "shm";
  const topology::Processors one = {topology::allowed_processors().front()};
  std::thread([&] {
    EXPECT_TRUE(topology::run_on(one));  // the ranks' threads inherit it
    for (const int ranks : kBrief ? std::vector{3, 4} : std::vector{2, 3, 4, 9}) {
      const auto thrown = outcomes(ranks, settings, [](Communicator& world) {
        for (const CrowdedMemory kind : {CrowdedMemory::symmetric, CrowdedMemory::ordinary, CrowdedMemory::mixed})
          for (const Algorithm algorithm : {Algorithm::automatic, Algorithm::chain}) broadcasts(world, kind, algorithm);
      });
      for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
    }
  }).join();
}

INSTANTIATE_TEST_SUITE_P(Distances, CrowdedBroadcast, testing::Bool(),
                         [](const auto& of) { return std::string(of.param ? "far" : "near"); });

}  // namespace
}  // namespace tutti::internal
