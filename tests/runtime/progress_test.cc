// Started calls that nobody waits for: a thread of the library completes them and tells of it. Calls that are waited
// for with a limit, from other threads, and with timeouts of their own.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "brief.h"
#include "runtime/ranks.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

class Progressing : public testing::TestWithParam<std::string> {
 protected:
  Settings settings(Progress progress = Progress::thread) const {
    Settings settings;
    settings.transport = GetParam();
    settings.progress = progress;
    return settings;
  }
};
INSTANTIATE_TEST_SUITE_P(Progress, Progressing, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

void expect_none_threw(const std::vector<std::optional<Error>>& thrown) {
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// Waits outside the library.
bool comes(const std::function<bool()>& is_so) {
  for (const auto until = Clock::now() + 20s; Clock::now() < until; std::this_thread::sleep_for(1ms))
    if (is_so()) return true;
  return false;
}

// Whether the last element has come, as only a look at the memory can say. That is a race, which ThreadSanitizer is not
// to see: nothing but the look happens in between.
[[gnu::no_sanitize_thread]] bool has_come(const std::vector<std::int32_t>& out, std::int32_t expected) {
  return *static_cast<const volatile std::int32_t*>(&out.back()) == expected;
}

TEST_P(Progressing, AStartedCallCompletesWhileNoRankIsInTheLibrary) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{3'000}, std::size_t{1} << (kBrief ? 18 : 21)})
    expect_none_threw(outcomes(3, settings(), [&](Communicator& world) {
      std::vector<std::int32_t> in(count, world.rank() + 1), out(count);
      Work work = world.start_all_reduce(in.data(), out.data(), count, DType::int32, Op::sum);
      EXPECT_TRUE(comes([&] { return has_come(out, 6); })) << count;
      work.wait();
      EXPECT_EQ(out, std::vector<std::int32_t>(count, 6));
    }));
}

// What the test above says is no accident: without the thread, a large call stands still.
TEST_P(Progressing, WithoutTheThreadALargeCallWaitsForItsCaller) {
  std::latch started(2), looked(2);
  expect_none_threw(outcomes(2, settings(Progress::caller), [&](Communicator& world) {
    constexpr std::size_t kCount = 1 << 21;
    std::vector<std::int32_t> in(kCount, 1), out(kCount);
    Work work = world.start_all_reduce(in.data(), out.data(), kCount, DType::int32, Op::sum);
    started.arrive_and_wait();
    std::this_thread::sleep_for(100ms);
    EXPECT_FALSE(has_come(out, 2));
    looked.arrive_and_wait();
    work.wait();
    EXPECT_TRUE(has_come(out, 2));
  }));
}

// Started and blocking calls of several communicators, of which the thread has some.
TEST_P(Progressing, ManyCallsOfSeveralCommunicatorsGiveTheSameResults) {
  const int rounds = kBrief ? 20 : 200;
  expect_none_threw(outcomes(3, settings(), [&](Communicator& world) {
    Communicator other = world.split(0, -world.rank());
    for (int round = 0; round < rounds; ++round) {
      const std::size_t count = 1 + (round * 7919) % 5000;
      std::vector<std::int32_t> in(count, world.rank() + round), a(count), b(count), c(count);
      Work first = world.start_all_reduce(in.data(), a.data(), count, DType::int32, Op::max);
      Work second = other.start_all_reduce(in.data(), b.data(), count, DType::int32, Op::min);
      if (round % 3 == 0) first.wait();
      world.all_reduce(in.data(), c.data(), count, DType::int32, Op::sum);
      if (round % 2 == 0) second = Work();
      first.wait();
      second.wait();
      ASSERT_EQ(a, std::vector<std::int32_t>(count, 2 + round));
      ASSERT_EQ(b, std::vector<std::int32_t>(count, round));
      ASSERT_EQ(c, std::vector<std::int32_t>(count, 3 + 3 * round));
    }
  }));
}

TEST_P(Progressing, OnCompleteTellsOnceEvenWithoutTheSetting) {
  for (const Progress progress : {Progress::caller, Progress::thread})
    expect_none_threw(outcomes(2, settings(progress), [&](Communicator& world) {
      std::atomic<int> told{0}, errors{0};
      const auto tell = [&](const std::optional<Error>& error) {
        errors += error ? 1 : 0;
        ++told;
      };
      {
        std::vector<std::int32_t> in(100'000, 1), out(100'000);
        Work work = world.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
        work.on_complete(tell);
        EXPECT_TRUE(comes([&] { return told == 1; }));
        EXPECT_TRUE(has_come(out, 2));
        work.on_complete(tell);  // of one that is over
        EXPECT_TRUE(comes([&] { return told == 2; }));
        EXPECT_TRUE(work.test());
      }
      Work().on_complete(tell);
      EXPECT_EQ(told, 3);
      EXPECT_EQ(errors, 0);
    }));
}

// The call that comes first is not over before the peer comes to it; what is said of the second must not wait for that.
TEST_P(Progressing, ACallThatIsOverIsToldOfBeforeOneThatIsNot) {
  std::promise<void> told;
  std::atomic<bool> peer_came{false};
  expect_none_threw(outcomes(2, settings(), [&](Communicator& world) {
    Communicator other = world.split(0, world.rank());
    std::int32_t in = 1, late = 0, early = 0;
    if (world.rank() == 1) {
      other.all_reduce(&in, &early, 1, DType::int32, Op::sum);
      told.get_future().wait_for(20s);
      peer_came = true;
      world.all_reduce(&in, &late, 1, DType::int32, Op::sum);
      return;
    }
    Work first = world.start_all_reduce(&in, &late, 1, DType::int32, Op::sum);
    Work second = other.start_all_reduce(&in, &early, 1, DType::int32, Op::sum);
    second.on_complete([&](const std::optional<Error>&) {
      EXPECT_FALSE(peer_came);
      told.set_value();
    });
    first.wait();
    second.wait();
  }));
}

TEST_P(Progressing, TellMayStartTheNextCall) {
  expect_none_threw(outcomes(2, settings(), [&](Communicator& world) {
    constexpr int kCalls = 50;
    std::int32_t in = 1, out = 0;
    std::atomic<int> told{0};
    std::vector<Work> works(kCalls + 1);
    std::function<void(const std::optional<Error>&)> next = [&](const std::optional<Error>&) {
      const int number = told;
      if (number < kCalls) {
        works[number] = world.start_all_reduce(&in, &out, 1, DType::int32, Op::sum);
        works[number].on_complete(next);
      }
      ++told;
    };
    next(std::nullopt);
    EXPECT_TRUE(comes([&] { return told == kCalls + 1; }));
    EXPECT_EQ(out, 2);
  }));
}

TEST_P(Progressing, AFailureIsToldAndThrownByTheWork) {
  std::promise<void> started;
  const auto thrown = outcomes(2, settings(), [&](Communicator& world) {
    std::vector<std::int32_t> in(1000, 1), out(1000);
    if (world.rank() == 1) {
      started.get_future().wait_for(20s);
      return world.abort("for this test");
    }
    std::atomic<int> told{0};
    std::optional<ErrorCode> code;
    Work work = world.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
    work.on_complete([&](const std::optional<Error>& error) {
      if (error) code = error->code;
      ++told;
    });
    started.set_value();
    EXPECT_TRUE(comes([&] { return told == 1; }));
    EXPECT_EQ(code, ErrorCode::aborted);
    EXPECT_THROW(work.wait(), Error);
  });
  expect_none_threw(thrown);
}

TEST_P(Progressing, WaitForReturnsWhenItsLimitHasPassed) {
  for (const Progress progress : {Progress::caller, Progress::thread}) {
    std::promise<void> waited;
    expect_none_threw(outcomes(2, settings(progress), [&](Communicator& world) {
      std::vector<std::int32_t> in(1000, 1), out(1000);
      if (world.rank() == 1) {
        waited.get_future().wait_for(20s);
        return world.all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
      }
      Work work = world.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
      EXPECT_FALSE(work.wait_for(0ms));
      const auto before = Clock::now();
      EXPECT_FALSE(work.wait_for(30ms));
      EXPECT_GE(Clock::now() - before, 30ms);
      waited.set_value();
      EXPECT_TRUE(work.wait_for(20s));
      EXPECT_TRUE(work.wait_for(0ms));
      EXPECT_TRUE(work.wait_for(std::chrono::milliseconds::max()));
      EXPECT_EQ(out, std::vector<std::int32_t>(1000, 2));
    }));
  }
}

TEST_P(Progressing, AnotherThreadMayWait) {
  for (const Progress progress : {Progress::caller, Progress::thread})
    expect_none_threw(outcomes(2, settings(progress), [&](Communicator& world) {
      for (int round = 0; round < (kBrief ? 5 : 50); ++round) {
        std::vector<std::int32_t> in(10'000, 1), out(10'000);
        Work work = world.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
        std::thread([moved = std::move(work)]() mutable { moved.wait(); }).join();
        ASSERT_TRUE(has_come(out, 2));
      }
    }));
}

// Of the two ranks one does not come: the other ends by the timeout that it has set, far below that of the settings.
TEST_P(Progressing, TimeoutsOfACallAndOfACommunicator) {
  for (const bool of_call : {true, false})
    for (const bool starts : {true, false}) {
      std::promise<void> over;
      const auto thrown = outcomes(2, settings(), [&](Communicator& world) {
        std::int32_t in = 1, out = 0;
        world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = 60s});
        if (world.rank() == 1) {
          over.get_future().wait_for(20s);
          return;
        }
        if (!of_call) world.set_timeout(100ms);
        const CallOptions options{.timeout = of_call ? 100ms : 0ms};
        const auto before = Clock::now();
        try {
          if (starts) {
            Work work = world.start_all_reduce(&in, &out, 1, DType::int32, Op::sum, options);
            EXPECT_TRUE(comes([&] { return world.failure().has_value(); }));  // nobody waits
            work.wait();
          } else {
            world.all_reduce(&in, &out, 1, DType::int32, Op::sum, options);
          }
          ADD_FAILURE() << "the call ended well";
        } catch (const Error& error) {
          EXPECT_EQ(error.code, ErrorCode::timeout) << error.what();
          EXPECT_EQ(error.peer, 1);
        }
        EXPECT_LT(Clock::now() - before, 10s);
        over.set_value();
      });
      expect_none_threw({thrown[0]});
    }
}

TEST_P(Progressing, ATimeoutOfAMillisecondEndsACall) {
  for (const auto timeout : {1ms, 3ms}) {
    std::promise<void> over;
    const auto thrown = outcomes(2, settings(), [&](Communicator& world) {
      std::int32_t in = 1, out = 0;
      world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = 60s});
      if (world.rank() == 1) {
        over.get_future().wait_for(20s);
        return;
      }
      try {
        world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = timeout});
        ADD_FAILURE() << "the call ended well";
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::timeout) << error.what();
        EXPECT_EQ(std::string(error.what()).find("after 0.0 s"), std::string::npos) << error.what();
      }
      over.set_value();
    });
    expect_none_threw({thrown[0]});
  }
}

// From a timeout of an hour to a short one, in front of and behind a call that waits, and while a thread waits for it.
TEST_P(Progressing, AStartedCallIsGivenAnotherTimeout) {
  for (const bool in_group : {false, true}) {
    std::promise<void> over;
    const auto thrown = outcomes(2, settings(), [&](Communicator& world) {
      std::int32_t in = 1, out = 0, other_out = 0;
      world.all_reduce(&in, &out, 1, DType::int32, Op::sum);
      if (world.rank() == 1) {
        over.get_future().wait_for(20s);
        return;
      }
      const CallOptions hour{.timeout = 1h};
      if (in_group) group_start();
      Work work = world.start_all_reduce(&in, &out, 1, DType::int32, Op::sum, hour);
      Work fused = world.start_all_reduce(&in, &other_out, 1, DType::int32, Op::sum, hour);
      if (in_group) {
        EXPECT_THROW(work.set_timeout(100ms), Error);  // it has not begun
        group_end();
      }
      std::thread waits([&] { EXPECT_THROW(work.wait(), Error); });
      std::this_thread::sleep_for(300ms);
      EXPECT_FALSE(world.failure());
      const auto before = Clock::now();
      work.set_timeout(200ms);
      waits.join();
      EXPECT_LT(Clock::now() - before, 10s);
      EXPECT_EQ(world.failure()->code, ErrorCode::timeout);
      EXPECT_NE(std::string(world.failure()->what()).find("(the timeout of this call)"), std::string::npos)
          << world.failure()->what();
      EXPECT_THROW(fused.wait(), Error);
      work.set_timeout(1h);  // of a call that is over
      over.set_value();
    });
    expect_none_threw({thrown[0]});
  }
}

// What a user reads must be what the user can change.
TEST_P(Progressing, ATimeoutIsCalledByWhatHasSetIt) {
  enum class By { call, communicator, job, environment };
  for (const By by : {By::call, By::communicator, By::job, By::environment}) {
    std::promise<void> over;
    Settings short_times = settings();
    const bool of_job = by == By::job || by == By::environment;
    if (of_job) short_times.timeout = 150ms;
    if (by == By::environment) ::setenv("TUTTI_TIMEOUT", "0.15", 1);
    const auto thrown = outcomes(2, short_times, [&](Communicator& world) {
      std::int32_t in = 1, out = 0;
      if (world.rank() == 1) {
        over.get_future().wait_for(20s);
        return;
      }
      // The same time as the job's is still the call's or the communicator's.
      const std::chrono::milliseconds time = 150ms;
      if (by == By::communicator) world.set_timeout(time);
      std::string said;
      try {
        world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = by == By::call ? time : 0ms});
      } catch (const Error& error) {
        said = error.what();
      }
      const auto says = [&](const char* words) { return said.find(words) != std::string::npos; };
      EXPECT_EQ(says("(the timeout of this call)"), by == By::call) << said;
      EXPECT_EQ(says("(the timeout that set_timeout() set)"), by == By::communicator) << said;
      EXPECT_EQ(says("(the timeout of the job; set_timeout() changes it)"), by == By::job) << said;
      EXPECT_EQ(says("TUTTI_TIMEOUT"), by == By::environment) << said;
      over.set_value();
    });
    ::unsetenv("TUTTI_TIMEOUT");
    expect_none_threw({thrown[0]});
  }
}

TEST_P(Progressing, ATimeoutThatIsNegativeIsRefused) {
  expect_none_threw(outcomes(1, settings(), [&](Communicator& world) {
    std::int32_t in = 1, out = 0;
    EXPECT_THROW(world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = -1ms}), Error);
    EXPECT_THROW(world.set_timeout(-1ms), Error);
    world.set_timeout(0ms);
    world.all_reduce(&in, &out, 1, DType::int32, Op::sum, {.timeout = std::chrono::milliseconds::max()});
    EXPECT_EQ(out, 1);
  }));
}

// Then the job ends on the library's own thread.
TEST_P(Progressing, TheLastThatKnowsAJobMayBeTheThread) {
  for (int round = 0; round < (kBrief ? 3 : 20); ++round)
    expect_none_threw(outcomes(2, settings(Progress::caller), [&](Communicator& world) {
      std::vector<std::int32_t> in(1000, 1), out(1000);
      std::atomic<int> told{0};
      Work work;
      {
        Communicator leaves = std::move(world);
        work = leaves.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
      }
      work.on_complete([&](const std::optional<Error>&) { ++told; });
      work.wait();
      work = Work();
      EXPECT_TRUE(comes([&] { return told == 1; }));
    }));
}

// Its started calls are over when a communicator is gone.
TEST_P(Progressing, ACommunicatorWaitsForTheCallsOfTheThread) {
  expect_none_threw(outcomes(2, settings(), [&](Communicator& world) {
    std::vector<std::int32_t> in(500'000, 1), out(500'000);
    Work work;
    {
      Communicator other = world.split(0, world.rank());
      work = other.start_all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
    }
    EXPECT_TRUE(has_come(out, 2));
  }));
}

}  // namespace
}  // namespace tutti::internal
