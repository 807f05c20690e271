// Ranks that make different calls, in some ways of their own. all_mismatches_test.cc has all pairs of calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "control/call_history.h"
#include "runtime/any_call.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Mismatch : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Calls, Mismatch, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

// A call that no message of a later one shows: all that tells of it is what the ranks say when they leave.
TEST_P(Mismatch, IsFoundWhenLeavingWhereTheLastCallsAreTheSame) {
  Settings settings;
  settings.transport = GetParam();
  const auto thrown = outcomes(4, settings, [&](Communicator& world) {
    std::int32_t value = world.rank();
    world.broadcast(std::span(&value, 1), world.rank() / 2 * 2);  // 0, 0, 2, 2
    world.broadcast(std::span(&value, 1), 1);
    world.finalize();
  });
  EXPECT_TRUE(std::any_of(thrown.begin(), thrown.end(), [](const auto& error) { return error.has_value(); }));
  for (const auto& error : thrown) {
    if (!error) continue;
    EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
  }
}

// A rank that needs nobody in its call leaves the job at once, and the others still wait for it: they hear what it has
// called, not only that it has left. Rank 0, which answers for those that have left, stays.
TEST_P(Mismatch, IsToldOfARankThatHasLeftTheJob) {
  Settings settings;
  settings.transport = GetParam();
  settings.timeout = 20s;
  constexpr int kRanks = 3;
  for (const Collective collective : {Collective::reduce, Collective::gather, Collective::scatter})
    for (const std::size_t count : {std::size_t{8}, std::size_t{200'000}})
      for (const std::vector<int>& roots : std::vector<std::vector<int>>{{1, 0, 0}, {0, 0, 1}, {2, 0, 1}, {1, 2, 0}}) {
        std::atomic<int> left = 0;
        std::atomic<int> mismatches = 0;
        const auto thrown = outcomes(kRanks + 1, settings, [&](Communicator& world) {
          Communicator part = world.split(world.rank() == 0 ? -1 : 0);
          if (world.rank() == 0) {
            for (int i = 0; i < 20'000 && left < kRanks; ++i) std::this_thread::sleep_for(1ms);
            return;
          }
          std::vector<float> in(kRanks * count), out(kRanks * count);
          try {
            const CallSpec spec{.collective = collective, .root = roots[part.rank()], .count = count};
            AnyCall::run(part, spec, in.data(), out.data());
            part.finalize();
          } catch (const Error& error) {
            EXPECT_EQ(error.code, ErrorCode::mismatch) << error.what();
            ++mismatches;
          }
          ++left;
        });
        for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
        EXPECT_GE(mismatches, 1);
      }
}

// A root need not wait until its messages are taken. Each of its calls is of another kind than the one before. More of
// them than a rank remembers, too.
TEST_P(Mismatch, IsFoundWhereRanksAreManyKindsOfCallsAhead) {
  constexpr int kRanks = 4;
  Settings settings;
  settings.transport = GetParam();
  settings.timeout = 20s;
  for (const std::size_t kinds : {std::size_t{100}, std::size_t{3} * CallHistory::kKept}) {
    std::atomic<int> over = 0;
    const auto thrown = outcomes(kRanks, settings, [&](Communicator& world) {
      const int roots[] = {3, 2, 2, 3};
      std::vector<std::int64_t> values(2);
      const auto begin = std::chrono::steady_clock::now();
      try {
        for (std::size_t i = 0; i < kinds; ++i)
          world.broadcast(values.data(), 1 + i % 2, DType::int64, roots[world.rank()]);
      } catch (const Error&) {
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
        ++over;
        throw;
      }
      ++over;  // it is ahead: the others are to hear of it without its next call
      for (int i = 0; i < 10'000 && over < kRanks; ++i) std::this_thread::sleep_for(1ms);
      world.barrier();
    });
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
      EXPECT_EQ(reason_of(*error), reason_of(*thrown[0]));
    }
    EXPECT_NE(reason_of(*thrown[0]).find("broadcast #1 "), std::string::npos) << thrown[0]->what();
  }
}

// Who leaves by its destructor cannot throw: it logs what others throw. The first to leave may believe that all went
// well. Rank 0, the hub, leaves the job last.
TEST_P(Mismatch, IsLoggedWhereADestructorLeaves) {
  constexpr int kRanks = 4;
  std::atomic<int> logged = 0;
  for (int i = 0; i < 20 && !HasFailure(); ++i) {
    std::mutex mutex;
    std::vector<std::string> said;
    const auto note = [&](std::string text) {
      const std::lock_guard lock(mutex);
      said.push_back(std::move(text));
    };
    const auto have_said = [&](std::size_t many) {
      const std::lock_guard lock(mutex);
      return said.size() >= many;
    };
    Settings settings;
    settings.transport = GetParam();
    settings.log_sink = [&](const LogLine& line) {
      if (!line.text.starts_with("the ranks made different calls: ")) return;
      ++logged;
      note(std::string(line.text));
    };
    const auto thrown = outcomes(kRanks, settings, [&](Communicator& world) {
      try {
        Communicator part = world.split(0);
        part.barrier();  // all have channels to all: a root need not wait
        world.barrier();
        std::int32_t value = 1;
        part.broadcast(std::span(&value, 1), part.rank());
      } catch (const Error& error) {
        note(reason_of(error));
      }
      for (int ms = 0; world.rank() == 0 && ms < 20'000 && !have_said(kRanks - 1); ++ms)
        std::this_thread::sleep_for(1ms);
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
    ASSERT_TRUE(said.size() == kRanks || said.size() == kRanks - 1) << said.size();
    for (const std::string& text : said) EXPECT_EQ(text, said[0]);
    EXPECT_NE(said[0].find(" broadcast #2 "), std::string::npos) << said[0];
  }
  EXPECT_GE(logged, 20);
}

TEST_P(Mismatch, NamesBothCalls) {
  Settings settings;
  settings.transport = GetParam();
  const auto thrown = outcomes(2, settings, [&](Communicator& world) {
    Communicator communicator = world.split(0);
    std::int32_t value = 1;
    for (int i = 0; i < 3; ++i) communicator.broadcast(std::span(&value, 1), world.rank());
    world.barrier();
    communicator.finalize();
  });
  const auto is_mismatch = [](const auto& error) { return error && error->code == ErrorCode::mismatch; };
  EXPECT_TRUE(is_mismatch(thrown[0]) || is_mismatch(thrown[1]));
  for (const auto& error : thrown) {
    if (!is_mismatch(error)) continue;  // the other one may be gone by then
    const std::string said = error->what();
    EXPECT_NE(said.find("broadcast #"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 0"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace tutti::internal
