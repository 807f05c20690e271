// Short calls that are done at once, or are begun so and go on as an Operation (src/executor/at_once.h).
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "brief.h"
#include "runtime/conformance.h"
#include "runtime/ranks.h"
#include "runtime/timing.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class AtOnceCalls : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, AtOnceCalls, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

// Each rank is late now and then, by less or more than the others look for its message.
TEST_P(AtOnceCalls, AreRightWhetherAPeerIsLateOrNot) {
  const int rounds = kBrief ? 8 : 150;
  for (const int ranks : {2, 3, 5}) {
    std::vector<Shape> shapes;
    std::vector<std::vector<std::vector<std::byte>>> right;
    for (const Collective collective : kWithBuffers)
      for (const std::size_t count : {std::size_t{2}, std::size_t{300}, std::size_t{1200}, std::size_t{7000}}) {
        shapes.push_back({collective, count, DType::float32, Op::sum, ranks - 1});
        right.push_back(expected(shapes.back(), ranks));
      }
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          std::mt19937 random(static_cast<unsigned>(world.rank()));
          for (std::size_t at = 0; at < shapes.size(); ++at)
            for (int round = 0; round < rounds && !testing::Test::HasFatalFailure(); ++round) {
              if (random() % 10 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 100));
              expect_right(world, shapes[at], {Algorithm::automatic, random() % 2 == 0, false},
                           right[at][static_cast<std::size_t>(world.rank())]);
            }
        },
        GetParam());
  }
}

// Short blocking calls among started ones and long ones.
TEST_P(AtOnceCalls, KeepTheirOrderAmongOthers) {
  const int calls = kBrief ? 200 : 2000;
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        std::mt19937 same(9);
        std::vector<std::int64_t> mine(5000), sum(5000), other(5000), other_sum(5000);
        Work work;
        std::size_t started_count = 0;
        const auto finish = [&] {
          work.wait();
          for (std::size_t i = 0; i < started_count; ++i) ASSERT_EQ(other_sum[i], 3 * 7);
          started_count = 0;
        };
        std::fill(other.begin(), other.end(), 7);
        for (int call = 0; call < calls; ++call) {
          const std::size_t count = same() % 20 == 0 ? 5000 : same() % 5 == 0 ? 500 + same() % 2000 : 1 + same() % 3;
          if (same() % 8 == 0) {
            if (started_count > 0) finish();
            started_count = count;
            work = world.start_all_reduce(other.data(), other_sum.data(), count, DType::int64, Op::sum);
          }
          std::fill_n(mine.begin(), count, call + world.rank());
          world.all_reduce(mine.data(), sum.data(), count, DType::int64, Op::sum);
          for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(sum[i], 3 * call + 3) << call;
        }
        if (started_count > 0) finish();
      },
      GetParam());
}

// Of messages that are sent at once, lent, and cut: on one rank symmetric memory, on the others ordinary.
TEST_P(AtOnceCalls, AreRightWhateverMemoryEachRankHas) {
  const int calls = kBrief ? 100 : 1000;
  for (const int ranks : {2, 3})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          constexpr std::size_t kMost = 100'000;
          const int rank = world.rank();
          std::mt19937 same(11);
          std::vector<std::int32_t> own(2 * kMost);
          const auto symmetric = world.allocate(2 * kMost * sizeof(std::int32_t));
          for (int call = 0; call < calls && !testing::Test::HasFailure(); ++call) {
            constexpr std::size_t kCounts[] = {2, 390, 400, 1500, 8000, 8200, 30'000, kMost};
            const std::size_t count = kCounts[same() % std::size(kCounts)];
            const int root = static_cast<int>(same()) & 1, which = static_cast<int>(same() % 4);
            const bool is_symmetric = rank == static_cast<int>(same() % 4);
            std::int32_t* const in = is_symmetric ? symmetric.as<std::int32_t>().data() : own.data();
            std::int32_t* const out = in + kMost;
            for (int again = 0; again < 3; ++again) {
              std::fill_n(in, count, call + rank);
              std::fill_n(out, count, -1);
              std::int32_t wanted = call + root;
              if (which == 0) {
                world.broadcast(in, out, count, DType::int32, root);
              } else if (which == 1) {
                world.all_reduce(in, out, count, DType::int32, Op::max);
                wanted = call + ranks - 1;
              } else if (which == 2 && rank < 2) {
                rank == root ? world.send(in, count, DType::int32, 1 - root)
                             : world.receive(out, count, DType::int32, root);
              } else if (which == 3) {
                world.reduce(in, out, count, DType::int32, Op::min, root);
                wanted = call;
              }
              const bool gets = which < 2 || (which == 2 && rank < 2 && rank != root) || (which == 3 && rank == root);
              for (std::size_t i = 0; gets && i < count; ++i) ASSERT_EQ(out[i], wanted) << call << ", " << which;
            }
          }
        },
        GetParam());
}

class AtOnceCallsFail : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, AtOnceCallsFail, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

Settings over(const std::string& transport) {
  Settings settings;
  settings.transport = transport;
  return settings;
}

TEST_P(AtOnceCallsFail, WhatDiffersAfterEqualCallsIsAMismatchOnEveryRank) {
  using Call = std::function<void(Communicator&, std::int32_t*, std::int32_t*)>;
  const Call usual = [](Communicator& world, auto* in, auto* out) {
    world.all_reduce(in, out, 2, DType::int32, Op::sum);
  };
  const std::vector<Call> others = {
      [](Communicator& world, auto* in, auto* out) { world.all_reduce(in, out, 3, DType::int32, Op::sum); },
      [](Communicator& world, auto* in, auto* out) { world.all_reduce(in, out, 2, DType::uint32, Op::sum); },
      [](Communicator& world, auto* in, auto* out) { world.all_reduce(in, out, 2, DType::int32, Op::max); },
      [](Communicator& world, auto* in, auto* out) { world.all_reduce(in, out, 20'000, DType::int32, Op::sum); },
      [](Communicator& world, auto* in, auto* out) { world.all_gather(in, out, 2, DType::int32); },
      [](Communicator& world, auto*, auto*) { world.barrier(); },
  };
  for (const int ranks : {2, 3})
    for (std::size_t at = 0; at < others.size(); ++at) {
      const auto thrown = outcomes(ranks, over(GetParam()), [&](Communicator& world) {
        std::vector<std::int32_t> in(20'000), out(60'000);
        for (int i = 0; i < 20; ++i) usual(world, in.data(), out.data());
        (world.rank() == ranks - 1 ? others[at] : usual)(world, in.data(), out.data());
        usual(world, in.data(), out.data());
      });
      for (int rank = 0; rank < ranks; ++rank) {
        ASSERT_TRUE(thrown[rank]) << "n = " << ranks << ", call " << at << ", rank " << rank;
        EXPECT_EQ(thrown[rank]->code, ErrorCode::mismatch) << thrown[rank]->what();
        EXPECT_NE(std::string(thrown[rank]->what()).find("#21"), std::string::npos) << thrown[rank]->what();
      }
    }
}

TEST_P(AtOnceCallsFail, ARankThatDoesNotComeIsNamedAfterEqualCalls) {
  Settings settings = over(GetParam());
  settings.timeout = kRunsOut;
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    std::int32_t one = 1, sum = 0;
    const auto call = [&] {
      world.all_reduce(&one, &sum, 1, DType::int32, Op::sum, {.algorithm = Algorithm::one_shot});
    };
    world.set_timeout(20s);
    for (int i = 0; i < 20; ++i) call();
    world.set_timeout(0ms);  // the job's from here on
    if (world.rank() == 1) wait_for_failure(world);
    call();
  });
  for (const int rank : {0, 2}) {
    ASSERT_TRUE(thrown[rank]);
    EXPECT_EQ(thrown[rank]->code, ErrorCode::timeout) << thrown[rank]->what();
    EXPECT_NE(std::string(thrown[rank]->what()).find("rank 1 has not entered all_reduce #21"), std::string::npos)
        << thrown[rank]->what();
  }
}

}  // namespace
}  // namespace tutti::internal
