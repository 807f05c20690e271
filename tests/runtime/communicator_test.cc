// Every collective through the public API, over every transport that needs no second host.
#include "tutti/communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <mutex>

#include "brief.h"
#include "collectives/catalogue.h"
#include "cuda/memory.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

class EveryTransport : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, EveryTransport, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

std::vector<int> sizes_of_jobs() {
  if (kBrief) return {1, 2, 3, 5};
  return {1, 2, 3, 4, 5};
}
std::vector<std::size_t> counts_for(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  if (kBrief) return {0, n + 1, 40'003};
  return {0, 1, n - 1, n, n + 1, 1000, 70'001};
}

TEST_P(EveryTransport, AllReduceGivesTheCanonicalBitsByEveryAlgorithmThatKeepsThem) {
  for (const int ranks : sizes_of_jobs())
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          for (const DType dtype :
               kBrief ? std::vector{DType::bfloat16} : std::vector{DType::float32, DType::bfloat16, DType::int64})
            for (const std::size_t count : counts_for(ranks)) {
              const auto expected = expected_reduction(ranks, count, dtype, Op::avg);
              const auto mine = random_input(world.rank(), count, dtype);
              for (const AlgorithmEntry& entry : catalogue()) {
                if (entry.collective != Collective::all_reduce || (!entry.canonical && ranks > 2)) continue;
                std::vector<std::byte> out(mine.size()), in_place = mine;
                world.all_reduce(mine.data(), out.data(), count, dtype, Op::avg, {.algorithm = entry.algorithm});
                world.all_reduce(in_place.data(), in_place.data(), count, dtype, Op::avg,
                                 {.algorithm = entry.algorithm});
                ASSERT_EQ(out, expected) << to_string(entry.algorithm) << " " << to_string(dtype) << " x " << count
                                         << " on " << ranks;
                ASSERT_EQ(in_place, expected)
                    << to_string(entry.algorithm) << " in place, " << to_string(dtype) << " x " << count;
              }
            }
        },
        GetParam());
}

TEST_P(EveryTransport, ReduceScatterAndAllGatherAreTheHalves) {
  for (const int ranks : sizes_of_jobs())
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const auto n = static_cast<std::size_t>(ranks), me = static_cast<std::size_t>(world.rank());
          for (const std::size_t part : {std::size_t{0}, std::size_t{1}, std::size_t{17}, std::size_t{9'001}})
            for (const AlgorithmEntry& entry : catalogue()) {
              if (!entry.canonical && ranks > 2) continue;
              if (entry.collective != Collective::reduce_scatter && entry.collective != Collective::all_gather)
                continue;
              const std::size_t bytes = part * 4;
              const auto whole = expected_reduction(ranks, part * n, DType::float32, Op::sum);
              const std::vector<std::byte> own(whole.begin() + me * bytes, whole.begin() + (me + 1) * bytes);
              if (entry.collective == Collective::reduce_scatter) {
                auto in = random_input(world.rank(), part * n, DType::float32);
                std::vector<std::byte> out(bytes);
                world.reduce_scatter(in.data(), out.data(), part, DType::float32, Op::sum,
                                     {.algorithm = entry.algorithm});
                ASSERT_EQ(out, own) << to_string(entry.algorithm);
                world.reduce_scatter(in.data(), in.data() + me * bytes, part, DType::float32, Op::sum,
                                     {.algorithm = entry.algorithm});
                ASSERT_TRUE(std::equal(own.begin(), own.end(), in.begin() + me * bytes))
                    << to_string(entry.algorithm) << " in place";
              } else {
                std::vector<std::byte> out(bytes * n), in_place(bytes * n);
                world.all_gather(own.data(), out.data(), part, DType::float32, {.algorithm = entry.algorithm});
                ASSERT_EQ(out, whole) << to_string(entry.algorithm);
                std::copy(own.begin(), own.end(), in_place.begin() + me * bytes);
                world.all_gather(in_place.data() + me * bytes, in_place.data(), part, DType::float32,
                                 {.algorithm = entry.algorithm});
                ASSERT_EQ(in_place, whole) << to_string(entry.algorithm) << " in place";
              }
            }
        },
        GetParam());
}

TEST_P(EveryTransport, BroadcastReachesEveryRankFromEveryRoot) {
  for (const int ranks : sizes_of_jobs())
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          for (const AlgorithmEntry& entry : catalogue()) {
            if (entry.collective != Collective::broadcast) continue;
            for (int root = 0; root < ranks; root += kBrief ? std::max(1, ranks - 1) : 1)
              for (const std::size_t count : {std::size_t{0}, std::size_t{3}, std::size_t{300'001}}) {
                auto bytes = random_input(world.rank(), count, DType::uint8);
                world.broadcast(bytes.data(), count, DType::uint8, root, {.algorithm = entry.algorithm});
                ASSERT_EQ(bytes, random_input(root, count, DType::uint8)) << name_of(entry) << " from " << root;
              }
          }
        },
        GetParam());
}

TEST_P(EveryTransport, ABarrierHoldsUntilEveryRankHasEntered) {
  std::atomic<int> entered{0};
  constexpr int kRanks = 4, kRounds = 50;
  Communicator::run_threads(
      kRanks,
      [&](Communicator& world) {
        for (int round = 1; round <= kRounds; ++round) {
          entered.fetch_add(1);
          world.barrier();
          ASSERT_GE(entered.load(), round * kRanks);
          world.barrier();
        }
      },
      GetParam());
}

TEST_P(EveryTransport, StartedCallsRunInOrderAndMayBeWaitedForInAnyOrder) {
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        constexpr std::size_t kCount = 5'000;
        const auto mine = random_input(world.rank(), kCount, DType::int32);
        const auto expected = expected_reduction(3, kCount, DType::int32, Op::sum);
        std::vector<std::vector<std::byte>> outs(6, std::vector<std::byte>(mine.size()));
        std::vector<Work> works;
        for (auto& out : outs)
          works.push_back(world.start_all_reduce(mine.data(), out.data(), kCount, DType::int32, Op::sum));
        works.push_back(world.start_barrier());
        while (!works.back().test()) {
        }
        for (auto work = works.rbegin(); work != works.rend(); ++work) work->wait();
        for (const auto& out : outs) ASSERT_EQ(out, expected);
      },
      GetParam());
}

TEST_P(EveryTransport, CommunicatorsMadeBySplitWorkSideBySide) {
  Communicator::run_threads(
      5,
      [&](Communicator& world) {
        Communicator parity = world.split(world.rank() % 2, -world.rank());
        Communicator alone = world.split(-1);
        ASSERT_EQ(alone.size(), 1);
        ASSERT_EQ(parity.size(), world.rank() % 2 == 0 ? 3 : 2);
        ASSERT_EQ(parity.rank(), world.rank() % 2 == 0 ? 2 - world.rank() / 2 : 1 - world.rank() / 2);
        std::int64_t all = world.rank(), some = world.rank();
        Work pending = world.start_all_reduce(&all, &all, 1, DType::int64, Op::sum);
        parity.all_reduce(std::span(&some, 1), Op::sum);
        pending.wait();
        EXPECT_EQ(all, 10);
        EXPECT_EQ(some, world.rank() % 2 == 0 ? 6 : 4);
      },
      GetParam());
}

TEST_P(EveryTransport, SymmetricMemoryGivesTheSameBits) {
  Communicator::run_threads(
      4,
      [&](Communicator& world) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{3'000}, std::size_t{200'003}}) {
          Memory in = world.allocate(count * 4), out = world.allocate(count * 4);
          const auto mine = random_input(world.rank(), count, DType::float32);
          const auto expected = expected_reduction(4, count, DType::float32, Op::sum);
          for (const Algorithm algorithm : {Algorithm::one_shot, Algorithm::two_shot, Algorithm::sliced_tree}) {
            std::memcpy(in.data(), mine.data(), mine.size());
            world.all_reduce(in.data(), out.data(), count, DType::float32, Op::sum, {.algorithm = algorithm});
            ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0)
                << to_string(algorithm) << " x " << count;
            ASSERT_EQ(std::memcmp(in.data(), mine.data(), mine.size()), 0) << "the input was written to";
            world.all_reduce(in.data(), in.data(), count, DType::float32, Op::sum, {.algorithm = algorithm});
            ASSERT_EQ(std::memcmp(in.data(), expected.data(), expected.size()), 0)
                << to_string(algorithm) << " in place x " << count;
          }
        }
      },
      GetParam());
}

TEST(SeveralThreads, MayUseDifferentCommunicatorsOfOneRankAtOnce) {
  for (const std::string& transport : kTransports)
    Communicator::run_threads(
        3,
        [&](Communicator& world) {
          std::vector<Communicator> copies;
          for (int i = 0; i < 3; ++i) copies.push_back(world.split(0));
          std::vector<std::thread> threads;
          for (Communicator& each : copies)
            threads.emplace_back([&each] {
              for (int round = 0; round < 100; ++round) {
                std::int32_t value = round + each.rank();
                each.all_reduce(std::span(&value, 1), Op::sum);
                ASSERT_EQ(value, 3 * round + 3);
              }
            });
          for (std::thread& thread : threads) thread.join();
        },
        transport);
}

// Every wait here is long enough to end in sleep, and the threads of a rank sleep at once: none may sleep through what
// another one's wake-up brought.
TEST_P(EveryTransport, ThreadsThatSleepAtOnceAllHearOfTheirNews) {
  constexpr int kThreads = 3, kRounds = 40;
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        std::vector<Communicator> own;
        for (int t = 0; t < kThreads; ++t) own.push_back(world.split(0));
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t)
          threads.emplace_back([&, t] {
            for (int round = 0; round < kRounds; ++round) {
              if ((round + t) % 2 == world.rank()) std::this_thread::sleep_for(std::chrono::milliseconds(4));
              std::int32_t sum = 1;
              own[t].all_reduce(std::span(&sum, 1), Op::sum);
              EXPECT_EQ(sum, 2);
            }
          });
        for (std::thread& thread : threads) thread.join();
      },
      GetParam());
}

TEST(Arguments, ThatAreWrongAreRefusedAndTheCommunicatorStaysUsable) {
  Communicator::run_threads(3, [&](Communicator& world) {
    std::vector<float> a(30), b(30);
    const auto refused = [&](ErrorCode code, auto&& call) {
      try {
        call();
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        EXPECT_EQ(error.code, code) << error.what();
      }
    };
    refused(ErrorCode::invalid_argument, [&] { world.broadcast(std::span(a), 3); });
    refused(ErrorCode::invalid_argument, [&] { world.broadcast(std::span(a), -1); });
    refused(ErrorCode::invalid_argument, [&] { world.all_reduce(nullptr, b.data(), 1, DType::float32, Op::sum); });
    refused(ErrorCode::invalid_argument,
            [&] { world.all_reduce(a.data(), a.data() + 1, 10, DType::float32, Op::sum); });
    refused(ErrorCode::invalid_argument,
            [&] { world.all_reduce(std::span(a), Op::sum, {.algorithm = Algorithm::ring}); });
    refused(ErrorCode::invalid_argument,
            [&] { world.all_reduce(std::span(a), Op::sum, {.algorithm = Algorithm::dissemination}); });
    if (!cuda::is_possible()) {  // else these would be taken for what they are not
      refused(ErrorCode::unsupported, [&] { world.all_reduce(std::span(a), Op::sum, {.stream = &a}); });
      refused(ErrorCode::unsupported, [&] {
        world.all_reduce({a.data(), MemoryKind::device, 0}, b.data(), 1, DType::float32, Op::sum);
      });
    }
    world.all_reduce(std::span(a), Op::sum, {.algorithm = Algorithm::ring, .order = Order::any});
    world.barrier();
  });
}

TEST(SettingsOfAJob, ThatAreWrongOnOneRankCountAsAJoinOfItsStore) {
  const auto store = make_memory_store();
  Settings wrong{.rank = 1, .size = 2, .interface = "nosuch0"}, other{.rank = 0, .size = 2};
  other.join_timeout = std::chrono::milliseconds(200);
  EXPECT_THROW(Communicator::join(wrong, *store), Error);
  EXPECT_THROW(Communicator::join(other, *store), Error);
  std::vector<std::thread> ranks;
  for (const int rank : {0, 1})
    ranks.emplace_back([&, rank] { Communicator::join({.rank = rank, .size = 2}, *store).barrier(); });
  for (std::thread& rank : ranks) rank.join();
}

TEST(SettingsOfAJob, ThatAreMalformedAreRefusedByName) {
  const auto refusal = [](const Settings& settings) {
    const auto thrown = outcomes(1, settings, [](Communicator&) {})[0];
    return thrown ? std::string(thrown->what()) : "";
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_NE(refusal({.transport = "ucx"}).find("transport \"ucx\""), std::string::npos);
  EXPECT_NE(refusal({.verbs_device = "mlx5_0:x"}).find("TUTTI_VERBS_DEVICE"), std::string::npos);
}

}  // namespace
}  // namespace tutti::internal
