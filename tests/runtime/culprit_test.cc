// Whom an error names: the same rank, in the same words, on every rank.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "net/free_port.h"
#include "runtime/processes.h"
#include "runtime/ranks.h"
#include "runtime/stories.h"
#include "runtime/timing.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Culprit : public ::testing::TestWithParam<std::string> {
 protected:
  static Settings with_timeout(std::chrono::milliseconds timeout) {
    Settings settings;
    settings.transport = GetParam() == "inproc" ? "auto" : GetParam();
    settings.timeout = timeout;
    return settings;
  }
};

// What the text says behind "rank N: ".
std::string reason(const Error& error) {
  const std::string text = error.what();
  return text.substr(text.find(": ") + 2);
}

TEST_P(Culprit, OneLateRankOfEightIsNamedByAll) {
  const auto thrown = outcomes(8, with_timeout(kRunsOut), [&](Communicator& world) {
    if (world.rank() == 5) wait_for_failure(world);
    world.barrier();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 5) << error->what();
    EXPECT_EQ(reason(*error), reason(*thrown[0]));
    EXPECT_TRUE(reason(*error).starts_with("rank 5 has not entered barrier #1")) << error->what();
  }
}

TEST_P(Culprit, AllLateRanksAreNamed) {
  const auto thrown = outcomes(6, with_timeout(kRunsOut), [&](Communicator& world) {
    world.set_timeout(20s);
    world.barrier();
    world.set_timeout(0ms);  // the job's from here on
    if (world.rank() == 1 || world.rank() == 4) wait_for_failure(world);
    std::vector<float> values(1000);
    world.all_reduce(std::span(values), Op::sum);
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 1) << error->what();
    EXPECT_EQ(reason(*error), reason(*thrown[0]));
    EXPECT_NE(reason(*error).find("ranks 1 and 4 have not entered all_reduce #2"), std::string::npos) << error->what();
    EXPECT_NE(reason(*error).find("rank 4 last completed barrier #1"), std::string::npos) << error->what();
  }
}

// The timeout of the one call says so, as a monitored barrier would.
TEST_P(Culprit, ABarrierWithATimeoutOfItsOwnNamesWhoIsMissing) {
  const auto thrown = outcomes(4, with_timeout(60s), [&](Communicator& world) {
    if (world.rank() >= 2) wait_for_failure(world);
    world.barrier({.timeout = kRunsOut});
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::timeout) << error->what();
    EXPECT_EQ(error->peer, 2) << error->what();
    EXPECT_TRUE(reason(*error).starts_with("ranks 2 and 3 have not entered barrier #1")) << error->what();
  }
}

TEST_P(Culprit, AMismatchNamesTheSameTwoCallsToAll) {
  for (const int odd : {0, 2}) {
    const auto thrown = outcomes(4, with_timeout(20s), [&](Communicator& world) {
      std::vector<float> values(world.rank() == odd ? 100 : 200);
      world.all_reduce(std::span(values), Op::sum);
      world.barrier();
    });
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
      EXPECT_EQ(error->peer, thrown[0]->peer);
      // The call in which a rank hears of it is its own.
      EXPECT_EQ(reason(*error).substr(0, reason(*error).find(", during")),
                reason(*thrown[0]).substr(0, reason(*thrown[0]).find(", during")));
    }
  }
}

// As long as it lives, this process gets no more of what the limit is on.
class Limit {
 public:
  Limit(int resource, std::uint64_t most) : resource_(resource) {
    EXPECT_EQ(::getrlimit(resource, &before_), 0);
    const rlimit less{most, before_.rlim_max};
    EXPECT_EQ(::setrlimit(resource, &less), 0);
  }
  ~Limit() { ::setrlimit(resource_, &before_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  const int resource_;
  rlimit before_{};
};

std::uint64_t address_space_in_use() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

// What the three ranks of a job of processes say of their first call, where rank 1 is short of something from before
// the join, or from behind it.
void expect_rank_one_is_named(const std::string& transport, int resource, bool is_before_join, std::uint64_t more,
                              const std::string& words) {
  constexpr int kRanks = 3;
  const std::uint16_t port = free_port();
  Stories stories;
  Processes ranks(kRanks, [&](int r, const Processes::Report& report) {
    std::optional<Limit> limit;
    const auto run_short = [&] {
      if (r == 1) limit.emplace(resource, more + (resource == RLIMIT_AS ? address_space_in_use() : 0));
    };
    try {
      if (is_before_join) run_short();
      Communicator world = Communicator::join(meeting_at(port, transport, r, kRanks));
      if (!is_before_join) run_short();
      std::vector<float> values(4);
      world.all_reduce(std::span(values), Op::sum);
    } catch (const Error& error) {
      stories.tell(r, error);
    }
    limit.reset();
    report('t');
  });
  for (int r = 0; r < kRanks; ++r) ASSERT_EQ(ranks.next_report(), 't');
  EXPECT_EQ(stories.of(2), stories.of(0));
  EXPECT_TRUE(stories.of(0).starts_with("system 1: rank 1 " + words)) << stories.of(0);
  EXPECT_TRUE(stories.of(1).starts_with("system 1: ")) << stories.of(1);
  if (resource == RLIMIT_NOFILE) {
    EXPECT_NE(stories.of(0).find("ulimit -n"), std::string::npos) << stories.of(0);
  }
}

TEST(CulpritOfTheSystem, ARankThatRunsOutOfDescriptorsIsNamedByAll) {
  for (const std::string transport : {"shm", "tcp"})
    expect_rank_one_is_named(transport, RLIMIT_NOFILE, false, 3, "cannot go on: ");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // which take all of the address space
TEST(CulpritOfTheSystem, ARankThatRunsOutOfAddressSpaceIsNamedByAll) {
  expect_rank_one_is_named("shm", RLIMIT_AS, false, 16 << 20, "cannot go on: shared memory: cannot reserve");
}

TEST(CulpritOfTheSystem, ARankThatFailsWhenTheOthersHaveJoinedIsNamedByAll) {
  expect_rank_one_is_named("shm", RLIMIT_AS, true, 100 << 20, "could not join: shared memory: cannot reserve");
}
#endif

INSTANTIATE_TEST_SUITE_P(Of, Culprit, ::testing::ValuesIn(kTransports), [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tutti::internal
