// Ranks on two hosts, over shared memory within and TCP between them: the hierarchical algorithms give the bits of the
// others, at fewer bytes.
#include <gtest/gtest.h>

#include <cstring>

#include "brief.h"
#include "runtime/conformance.h"
#include "runtime/fake_hosts.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using Bytes = std::vector<std::byte>;

class OnTwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_make_hosts()) GTEST_SKIP() << "this process may not make network namespaces";
  }
};

constexpr CallOptions kHierarchical{.algorithm = Algorithm::hierarchical};
using Placements = std::vector<std::vector<std::vector<int>>>;
const Placements kPlacements =
    kBrief ? Placements{{{0, 1}, {2, 3, 4}}, {{0, 2}, {1, 3}}}
           : Placements{{{0, 1}, {2, 3}}, {{0, 1}, {2, 3, 4}}, {{0, 2}, {1, 3}}, {{0}, {1, 2, 3}}};

std::string in_words(const std::vector<std::vector<int>>& ranks) {
  std::string text;
  for (const auto& host : ranks) {
    text += text.empty() ? "ranks" : " |";
    for (int rank : host) text.append(" ").append(std::to_string(rank));
  }
  return text;
}

void expect_all_reduces(Communicator& world, DType dtype, std::size_t count, Op op) {
  const Bytes mine = random_input(world.rank(), count, dtype);
  Bytes out(mine.size()), in_place = mine, by_two_shot(mine.size());
  world.all_reduce(mine.data(), out.data(), count, dtype, op, kHierarchical);
  world.all_reduce(in_place.data(), in_place.data(), count, dtype, op, kHierarchical);
  world.all_reduce(mine.data(), by_two_shot.data(), count, dtype, op, {.algorithm = Algorithm::two_shot});
  const std::string what = std::string(to_string(dtype)) + " x " + std::to_string(count);
  EXPECT_EQ(out, by_two_shot) << what;
  EXPECT_EQ(in_place, by_two_shot) << what << ", in place";
  EXPECT_EQ(out, expected_reduction(world.size(), count, dtype, op)) << what;
}

TEST_F(OnTwoHosts, AllReduceGivesTheBitsOfTwoShot) {
  for (const auto& ranks : kPlacements)
    EXPECT_TRUE(run_on_hosts(ranks, [](Communicator& world) {
      for (const DType dtype :
           kBrief ? std::vector{DType::bfloat16} : std::vector{DType::float32, DType::bfloat16, DType::int64})
        for (const std::size_t count : {0, 1, 5, 1000, 300'001}) expect_all_reduces(world, dtype, count, Op::sum);
      expect_all_reduces(world, DType::float16, 70'001, Op::avg);
    })) << in_words(ranks);
}

TEST_F(OnTwoHosts, AllReduceGivesTheBitsOfTwoShotInMemoryThatNeighboursShare) {
  for (const auto& ranks : kPlacements)
    EXPECT_TRUE(run_on_hosts(ranks, [](Communicator& world) {
      constexpr std::size_t kCount = 100'003;
      Memory memory = world.allocate(kCount * sizeof(float));
      const Bytes mine = random_input(world.rank(), kCount, DType::float32);
      std::memcpy(memory.data(), mine.data(), mine.size());
      world.all_reduce(memory.data(), memory.data(), kCount, DType::float32, Op::sum, kHierarchical);
      const Bytes expected = expected_reduction(world.size(), kCount, DType::float32, Op::sum);
      EXPECT_EQ(std::memcmp(memory.data(), expected.data(), expected.size()), 0);
    })) << in_words(ranks);
}

TEST_F(OnTwoHosts, ReduceScatterAndAllGatherAreTheHalves) {
  for (const auto& ranks : kPlacements)
    EXPECT_TRUE(run_on_hosts(ranks, [](Communicator& world) {
      const std::size_t n = static_cast<std::size_t>(world.size()), me = static_cast<std::size_t>(world.rank());
      for (const std::size_t part : {0, 1, 17, 90'001}) {
        const std::size_t bytes = part * sizeof(float);
        const Bytes expected = expected_reduction(world.size(), part * n, DType::float32, Op::sum);
        Bytes whole = random_input(world.rank(), part * n, DType::float32), own(bytes);
        world.reduce_scatter(whole.data(), own.data(), part, DType::float32, Op::sum, kHierarchical);
        EXPECT_EQ(own, Bytes(expected.begin() + me * bytes, expected.begin() + (me + 1) * bytes)) << part;
        world.all_gather(own.data(), whole.data(), part, DType::float32, kHierarchical);
        EXPECT_EQ(whole, expected) << part;
      }
    })) << in_words(ranks);
}

TEST_F(OnTwoHosts, BroadcastReachesEveryoneFromEveryRoot) {
  for (const auto& ranks : kPlacements)
    EXPECT_TRUE(run_on_hosts(ranks, [](Communicator& world) {
      for (int root = 0; root < world.size(); ++root)
        for (const std::size_t count : {0, 1, 1000, kBrief ? 100'001 : 500'001}) {
          const Bytes expected = random_input(root, count, DType::int32);
          Bytes buffer = world.rank() == root ? expected : Bytes(expected.size());
          world.broadcast(buffer.data(), count, DType::int32, root, kHierarchical);
          EXPECT_EQ(buffer, expected) << count << " from " << root;
        }
    })) << in_words(ranks);
}

TEST_F(OnTwoHosts, EveryCollectiveGivesWhatItSays) {
  for (const auto& ranks : kPlacements)
    EXPECT_TRUE(run_on_hosts(ranks, [](Communicator& world) {
      for (const auto& [shape, form] : covering_calls(world.size(), kBrief ? 2 : 6))
        if (!HasFatalFailure())
          expect_right(world, shape, form, expected(shape, world.size())[static_cast<std::size_t>(world.rank())]);
    })) << in_words(ranks);
}

#if !defined(TUTTI_BRIEF) && !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
// Minutes, of which a sanitizer would make hours.
using ExhaustiveConformance = OnTwoHosts;
TEST_F(ExhaustiveConformance, EveryCallOfRanksOnTwoHostsGivesWhatItSays) {
  for (int ranks = 2; ranks <= 8; ++ranks) {
    std::vector<std::vector<int>> hosts(2);  // the first has more ranks, and they take turns with the second's
    for (int rank = 0; rank < ranks; ++rank) hosts[rank % 3 == 1 ? 1 : 0].push_back(rank);
    EXPECT_TRUE(run_on_hosts(hosts, expect_every_call_right)) << in_words(hosts);
  }
}
#endif

// What its host sends while it reduces `count` floats, in units of the message.
double parts_sent_by_host(Communicator& world, Algorithm algorithm, std::size_t count) {
  std::vector<float> values(count, 1.0f);
  const auto reduce = [&] { world.all_reduce(std::span(values), Op::sum, {.algorithm = algorithm}); };
  reduce();  // connections are made
  world.barrier();
  const std::size_t before = bytes_sent_by_host();
  world.barrier();
  reduce();
  world.barrier();
  return static_cast<double>(bytes_sent_by_host() - before) / static_cast<double>(count * sizeof(float));
}

// Two hosts of two: each of its ranks sends M/2, two_shot's M. The rest is headers and acknowledgements.
TEST_F(OnTwoHosts, AllReduceSendsBetweenThemWhatItsScheduleSays) {
  EXPECT_TRUE(run_on_hosts({{0, 1}, {2, 3}}, [](Communicator& world) {
    constexpr std::size_t kCount = 4 << 20;
    const double hierarchical = parts_sent_by_host(world, Algorithm::hierarchical, kCount);
    const double two_shot = parts_sent_by_host(world, Algorithm::two_shot, kCount);
    EXPECT_GE(hierarchical, 1.0);
    EXPECT_LE(hierarchical, 1.1);
    EXPECT_GE(two_shot, 2.0);
    EXPECT_LE(two_shot, 2.2);
  }));
}

TEST_F(OnTwoHosts, WhoNamesARdmaDeviceIsToldThatItIsNotUsed) {
  testing::internal::CaptureStderr();
  EXPECT_TRUE(run_on_hosts({{0}, {1}}, [](Communicator& world) { world.barrier(); }, {.verbs_device = "no_such"}));
  const std::string said = testing::internal::GetCapturedStderr();
  for (const std::string rank : {"0", "1"})
    EXPECT_NE(
        said.find("tutti: rank " + rank + ": goes without verbs, though TUTTI_VERBS_DEVICE asks for no_such: this"),
        std::string::npos)
        << said;
}

TEST_F(OnTwoHosts, AFailureOnOneOfThemFailsTheRun) {
  EXPECT_FALSE(run_on_hosts({{0}, {1}}, [](Communicator& world) {
    if (world.rank() == 1) throw std::runtime_error("meant to fail: this line belongs to a test that passes");
  }));
}

}  // namespace
}  // namespace tutti::internal
