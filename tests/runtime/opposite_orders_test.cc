// Several communicators that the ranks of a job use in different orders: nobody waits in a circle.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "brief.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
constexpr int kRanks = 3, kCommunicators = 4;

class OppositeOrders : public testing::TestWithParam<std::tuple<std::string, Progress>> {
 protected:
  // body(communicators) on each rank: the job's, two that were split off, and a subgroup, all of all ranks.
  void expect_ends_well(const std::function<void(std::vector<Communicator>&)>& body) {
    Settings settings;
    settings.transport = std::get<0>(GetParam());
    settings.progress = std::get<1>(GetParam());
    settings.timeout = 20s;
    const auto thrown = outcomes(kRanks, settings, [&](Communicator& world) {
      std::vector<Communicator> all;
      all.push_back(world.split(0));
      all.push_back(world.split(0));
      all.push_back(world.subgroup(std::vector<int>{2, 0, 1}));
      all.push_back(std::move(world));
      body(all);
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
  // Which communicator a rank uses as its n-th: another one is the first on each rank, and the last.
  static std::size_t nth(const std::vector<Communicator>& all, int n) {
    const int rank = all.back().rank();
    const int turned = (n + rank) % kCommunicators;
    return static_cast<std::size_t>(rank % 2 == 0 ? turned : kCommunicators - 1 - turned);
  }
  static std::vector<std::size_t> counts() {
    return kBrief ? std::vector<std::size_t>{1, 50'000} : std::vector<std::size_t>{1, 50'000, 1'000'000};
  }
};
INSTANTIATE_TEST_SUITE_P(Communicators, OppositeOrders,
                         testing::Combine(testing::Values("shm", "tcp"),
                                          testing::Values(Progress::caller, Progress::thread)),
                         [](const auto& it) {
                           return std::get<0>(it.param) +
                                  (std::get<1>(it.param) == Progress::caller ? "ByCaller" : "ByThread");
                         });

using Buffers = std::vector<std::vector<std::int32_t>>;

void expect_sums(const Buffers& buffers) {
  for (const auto& buffer : buffers)
    EXPECT_EQ(std::count(buffer.begin(), buffer.end(), kRanks), static_cast<std::ptrdiff_t>(buffer.size()));
}

TEST_P(OppositeOrders, OfStartedCallsEndWell) {
  for (const std::size_t count : counts())
    expect_ends_well([&](std::vector<Communicator>& all) {
      for (int round = 0; round < 3; ++round) {
        Buffers buffers(kCommunicators, std::vector<std::int32_t>(count, 1));
        std::vector<Work> works(kCommunicators);
        for (int n = 0; n < kCommunicators; ++n) {
          const std::size_t i = nth(all, n);
          works[i] = all[i].start_all_reduce(buffers[i].data(), buffers[i].data(), count, DType::int32, Op::sum);
        }
        for (int n = 0; n < kCommunicators; ++n) works[nth(all, n)].wait();
        expect_sums(buffers);
      }
    });
}

// The calls of one communicator block while those of the others are started.
TEST_P(OppositeOrders, OfBlockingAndStartedCallsEndWell) {
  for (const std::size_t count : counts())
    expect_ends_well([&](std::vector<Communicator>& all) {
      Buffers buffers(kCommunicators, std::vector<std::int32_t>(count, 1));
      std::vector<Work> works(kCommunicators);
      for (int n = 0; n < kCommunicators; ++n) {
        const std::size_t i = nth(all, n);
        if (n + 1 < kCommunicators) {
          works[i] = all[i].start_all_reduce(buffers[i].data(), buffers[i].data(), count, DType::int32, Op::sum);
        } else {
          all[i].all_reduce(buffers[i].data(), buffers[i].data(), count, DType::int32, Op::sum);
        }
      }
      for (Work& work : works) work.wait();
      expect_sums(buffers);
    });
}

// A thread for each communicator; on each rank another thread is in the library first.
TEST_P(OppositeOrders, OfBlockingCallsOfSeveralThreadsEndWell) {
  for (const std::size_t count : counts())
    expect_ends_well([&](std::vector<Communicator>& all) {
      Buffers buffers(kCommunicators, std::vector<std::int32_t>(count, 1));
      std::vector<std::thread> threads;
      for (int n = 0; n < kCommunicators; ++n) {
        const std::size_t i = nth(all, n);
        threads.emplace_back([&, i] {
          try {
            all[i].all_reduce(buffers[i].data(), buffers[i].data(), count, DType::int32, Op::sum);
          } catch (const Error& error) {
            ADD_FAILURE() << error.what();
          }
        });
        std::this_thread::sleep_for(20ms);
      }
      for (std::thread& thread : threads) thread.join();
      expect_sums(buffers);
    });
}

// Each rank waits for the communicator's calls of one after the other, with messages between two ranks among them.
TEST_P(OppositeOrders, OfSendsAndCollectivesEndWell) {
  expect_ends_well([&](std::vector<Communicator>& all) {
    constexpr std::size_t kCount = 100'000;
    Buffers sums(kCommunicators, std::vector<std::int32_t>(kCount, 1)), got(kCommunicators);
    std::vector<std::int32_t> mine(kCount, 1);
    std::vector<Work> works;
    for (int n = 0; n < kCommunicators; ++n) {
      const std::size_t i = nth(all, n);
      const int rank = all[i].rank();
      got[i].resize(kCount);
      works.push_back(all[i].start_send(mine.data(), kCount, DType::int32, (rank + 1) % kRanks));
      works.push_back(all[i].start_all_reduce(sums[i].data(), sums[i].data(), kCount, DType::int32, Op::sum));
      works.push_back(all[i].start_receive(got[i].data(), kCount, DType::int32, (rank + kRanks - 1) % kRanks));
    }
    for (Work& work : works) work.wait();
    expect_sums(sums);
    for (const auto& buffer : got) EXPECT_EQ(buffer, mine);
  });
}

}  // namespace
}  // namespace tutti::internal
