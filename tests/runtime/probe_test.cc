// A rank finds out who has sent, over every transport that needs no second host.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks.h"
#include "tutti/communicator.h"
#include "tutti/group.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class Probe : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, Probe, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

// Rank 0 does not know who sends when, and how much of it a transport has by then.
TEST_P(Probe, ARankFindsOutWhoHasSent) {
  for (const int ranks : {2, 3, 5})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          constexpr int kEach = 20;
          std::mt19937 random(static_cast<unsigned>(world.rank()));
          const auto length = [](int from, int i) { return std::size_t{(i % 5 == 4 ? 50'000u : 10u) * (from + 1)}; };
          if (world.rank() != 0) {
            for (int i = 0; i < kEach; ++i) {
              const std::vector<std::int32_t> values(length(world.rank(), i), 100 * world.rank() + i);
              if (random() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random() % 300));
              world.send(values.data(), values.size(), DType::int32, 0);
            }
            EXPECT_EQ(world.probe(), std::nullopt);
            return world.barrier();
          }
          std::vector<int> received(ranks);
          for (int left = kEach * (ranks - 1); left > 0; --left) {
            const auto from = world.probe(60s);
            ASSERT_TRUE(from.has_value());
            if (ranks == 2) {
              ASSERT_EQ(world.probe(), from) << "it stays until it is received";
            }
            const int i = received[*from]++;
            std::vector<std::int32_t> values(length(*from, i));
            world.receive(values.data(), values.size(), DType::int32, *from);
            ASSERT_EQ(values, std::vector<std::int32_t>(values.size(), 100 * *from + i));
          }
          EXPECT_EQ(world.probe(20ms), std::nullopt);
          world.barrier();
        },
        GetParam());
}

TEST_P(Probe, EveryRankThatHasSentGetsItsTurn) {
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        const std::int32_t value = world.rank();
        std::vector<Work> sends;
        if (world.rank() != 0)
          for (int i = 0; i < 4; ++i) sends.push_back(world.start_send(&value, 1, DType::int32, 0));
        if (world.rank() == 0) {
          std::set<int> first;
          const auto until = std::chrono::steady_clock::now() + 60s;
          while (first.size() < 2 && std::chrono::steady_clock::now() < until) first.insert(world.probe(60s).value());
          EXPECT_EQ(first, (std::set<int>{1, 2}));
          for (int i = 0; i < 8; ++i) {
            std::int32_t got = 0;
            const int from = world.probe(60s).value();
            world.receive(&got, 1, DType::int32, from);
            EXPECT_EQ(got, from);
          }
        }
        for (Work& work : sends) work.wait();
        world.barrier();
      },
      GetParam());
}

TEST_P(Probe, ProbingHearsOfAFailure) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          std::this_thread::sleep_for(20ms);
          return world.abort("enough");
        }
        EXPECT_THROW(world.probe(-1ms), Error);
        group_start();
        EXPECT_THROW(world.probe(), Error);
        group_end();
        try {
          world.probe(60s);
          FAIL() << "it should have thrown";
        } catch (const Error& error) {
          EXPECT_EQ(error.code, ErrorCode::aborted) << error.what();
        }
      },
      GetParam());
}

}  // namespace
}  // namespace tutti::internal
