// Communicators that some ranks of another one make alone: Communicator::subgroup().
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/ranks.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;
using Ranks = std::vector<int>;
using Clock = std::chrono::steady_clock;

class Subgroup : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, Subgroup, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

bool is_in(const Ranks& ranks, int rank) { return std::ranges::find(ranks, rank) != ranks.end(); }

// The sum of the members' numbers in the world, and a message round the ring of them.
void expect_works(Communicator& group, const Ranks& ranks, int own) {
  ASSERT_EQ(group.size(), static_cast<int>(ranks.size()));
  ASSERT_EQ(ranks[group.rank()], own);
  std::vector<std::int64_t> values(5000, own);
  group.all_reduce(std::span(values), Op::sum);
  EXPECT_EQ(values.back(), std::accumulate(ranks.begin(), ranks.end(), 0));
  if (group.size() == 1) return;
  const std::int32_t mine = own;
  std::int32_t theirs = -1;
  const int next = (group.rank() + 1) % group.size(), before = (group.rank() + group.size() - 1) % group.size();
  Work sends = group.start_send(&mine, 1, DType::int32, next);
  group.receive(&theirs, 1, DType::int32, before);
  sends.wait();
  EXPECT_EQ(theirs, ranks[before]);
}

std::string text_of_failure(const std::function<void()>& call, ErrorCode code) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "the call ended well";
  return "";
}

TEST_P(Subgroup, DisjointAndOverlappingOnesWorkSideBySide) {
  const std::vector<Ranks> lists{{0, 1}, {2, 3}, {3, 1}, {2, 0, 1}, {1, 2, 3}, {3, 2, 1, 0}, {0}, {1}, {2}, {3}};
  Communicator::run_threads(
      4,
      [&](Communicator& world) {
        std::vector<Communicator> groups;
        for (const Ranks& ranks : lists)
          if (is_in(ranks, world.rank())) groups.push_back(world.subgroup(ranks));
        for (int round = 0; round < 2; ++round) {
          std::size_t next = 0;
          for (const Ranks& ranks : lists)
            if (is_in(ranks, world.rank())) expect_works(groups[next++], ranks, world.rank());
          world.barrier();
        }
      },
      GetParam());
}

TEST_P(Subgroup, AreMadeInAnyOrder) {
  const std::vector<Ranks> lists{{0, 1}, {1, 2}, {0, 2}, {0, 1, 2}};
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        std::vector<std::optional<Communicator>> groups(lists.size());
        for (std::size_t i = 0; i < lists.size(); ++i) {
          const std::size_t which = (i + static_cast<std::size_t>(world.rank()) * 3) % lists.size();
          if (is_in(lists[which], world.rank())) groups[which].emplace(world.subgroup(lists[which], "of one name"));
        }
        for (std::size_t i = 0; i < lists.size(); ++i)
          if (groups[i]) expect_works(*groups[i], lists[i], world.rank());
      },
      GetParam());
}

// Those of one list are told apart by how many there have been; those of one list and several names by the name.
TEST_P(Subgroup, OfOneListTwiceAreTwo) {
  const Ranks both{1, 0};
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        Communicator first = world.subgroup(both);
        const bool begins = world.rank() == 0;
        std::optional<Communicator> named, other;
        (begins ? named : other).emplace(world.subgroup(both, begins ? "named" : "other"));
        (begins ? other : named).emplace(world.subgroup(both, begins ? "other" : "named"));
        Communicator second = world.subgroup(both);
        // Calls that could not be told from each other, begun in one order here and in another there.
        std::array<std::int32_t, 4> values{10, 20, 30, 40};
        std::array<Communicator*, 4> groups{&first, &second, &*named, &*other};
        std::array<Work, 4> works;
        for (std::size_t i = 0; i < 4; ++i) {
          const std::size_t at = begins ? i : 3 - i;
          works[at] = groups[at]->start_all_reduce(&values[at], &values[at], 1, DType::int32, Op::sum);
        }
        for (Work& work : works) work.wait();
        EXPECT_EQ(values, (std::array<std::int32_t, 4>{20, 40, 60, 80}));
        // One that is gone is not the next one.
        for (int round = 0; round < 3; ++round) {
          Communicator again = world.subgroup(both, "again");
          expect_works(again, both, world.rank());
        }
      },
      GetParam());
}

TEST_P(Subgroup, OfASubgroupAndOfASplitWork) {
  Communicator::run_threads(
      4,
      [](Communicator& world) {
        if (world.rank() != 0) {
          Communicator three = world.subgroup(Ranks{3, 1, 2});
          if (world.rank() != 3) {
            Communicator two = three.subgroup(Ranks{2, 1});
            expect_works(two, {2, 1}, world.rank());
          }
        }
        Communicator half = world.split(world.rank() % 2);
        Communicator same = half.subgroup(Ranks{1, 0});
        expect_works(same, {2 + world.rank() % 2, world.rank() % 2}, world.rank());
      },
      GetParam());
}

TEST_P(Subgroup, WaitsForNobodyAndNeedsNobodyElse) {
  const Arrivals made, used;
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        world.barrier();
        if (world.rank() == 1) {  // the one that is not in it
          EXPECT_TRUE(used.wait_for(2));
        } else {
          if (world.rank() == 2) {
            EXPECT_TRUE(made.wait_for(1));
          }
          Communicator group = world.subgroup(Ranks{2, 0});
          made.add();
          expect_works(group, {2, 0}, world.rank());
          used.add();
        }
        world.barrier();
      },
      GetParam());
}

TEST_P(Subgroup, ARankThatLeavesIsNamedAndTheOthersGoOn) {
  Communicator::run_threads(
      4,
      [](Communicator& world) {
        world.set_timeout(20s);
        if (world.rank() == 0) {
          world.barrier();
        } else {
          Communicator group = world.subgroup(Ranks{1, 3, 2});
          expect_works(group, {1, 3, 2}, world.rank());
          world.barrier();  // else the failure on one rank might end what another still does
          if (world.rank() != 3) {
            std::int32_t value = 1;
            const std::string said =
                text_of_failure([&] { group.all_reduce(std::span(&value, 1), Op::sum); }, ErrorCode::mismatch);
            EXPECT_THAT(said, HasSubstr("rank 1 (of the job: 3) no call #"));
          }
        }
        std::int32_t value = 1;
        world.all_reduce(std::span(&value, 1), Op::sum);
        EXPECT_EQ(value, 4);
      },
      GetParam());
}

TEST_P(Subgroup, ARankThatDoesNotMakeItIsNamed) {
  Communicator::run_threads(
      4,
      [](Communicator& world) {
        world.barrier();
        if (world.rank() == 1 || world.rank() == 2) {
          world.set_timeout(kRunsOut);
          Communicator group = world.subgroup(Ranks{1, 3, 2}, "which rank 3 does not make");
          std::int32_t value = 1;
          const std::string said =
              text_of_failure([&] { group.all_reduce(std::span(&value, 1), Op::sum); }, ErrorCode::timeout);
          EXPECT_THAT(said, HasSubstr("rank 1 (of the job: 3) has not entered all_reduce #1"));
          EXPECT_THAT(said, HasSubstr("set_timeout()"));  // which was the world's
          world.set_timeout(0ms);
        }
        world.barrier();
      },
      GetParam());
}

TEST_P(Subgroup, RanksThatDisagreeAreNamedByTheirNumbersInTheJob) {
  Communicator::run_threads(
      4,
      [](Communicator& world) {
        if (world.rank() % 2 == 1) {
          Communicator group = world.subgroup(Ranks{1, 3});
          std::vector<std::int32_t> values(10);
          const std::size_t count = world.rank() == 1 ? 4 : 5;
          const std::string said =
              text_of_failure([&] { group.all_reduce(values.data(), values.data(), count, DType::int32, Op::sum); },
                              ErrorCode::mismatch);
          EXPECT_THAT(said, HasSubstr("rank 1 (of the job: 3)"));
        }
        world.barrier();
      },
      GetParam());
}

TEST(SubgroupArguments, ThatAreWrongAreRefusedAndMakeNothing) {
  Communicator::run_threads(3, [](Communicator& world) {
    const auto refused = [&](const Ranks& ranks) {
      return text_of_failure([&] { world.subgroup(ranks); }, ErrorCode::invalid_argument);
    };
    EXPECT_THAT(refused({}), HasSubstr("the list has no ranks"));
    EXPECT_THAT(refused({0, 1, 3, 2}), HasSubstr("there is no rank 3; there are 3"));
    EXPECT_THAT(refused({0, 1, 2, -1}), HasSubstr("there is no rank -1"));
    EXPECT_THAT(refused({0, 1, 2, 1}), HasSubstr("rank 1 is in the list twice"));
    const int other = (world.rank() + 1) % 3;
    EXPECT_THAT(refused({other}), HasSubstr("this rank, " + std::to_string(world.rank()) + ", is not in the list"));
    Communicator all = world.subgroup(Ranks{0, 1, 2});
    expect_works(all, {0, 1, 2}, world.rank());
  });
}

TEST(SubgroupTimeout, IsThatOfWhatItWasMadeFrom) {
  Communicator::run_threads(2, [](Communicator& world) {
    world.barrier();
    world.set_timeout(200ms);
    Communicator group = world.subgroup(Ranks{0, 1});
    if (world.rank() == 0) {
      std::int32_t value = 1;
      const auto before = Clock::now();
      text_of_failure([&] { group.all_reduce(std::span(&value, 1), Op::sum); }, ErrorCode::timeout);
      EXPECT_LT(Clock::now() - before, 20s);
    }
    world.set_timeout(0ms);
    world.barrier();
  });
}

}  // namespace
}  // namespace tutti::internal
