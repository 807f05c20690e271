// Values at the ends of their ranges, and beyond: each is taken, or refused in words.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "runtime/ranks.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

void expect_refused(ErrorCode code, const std::string& words, const std::function<void()>& call) {
  try {
    call();
    ADD_FAILURE() << "not refused: " << words;
  } catch (const Error& error) {
    EXPECT_EQ(error.code, code) << error.what();
    EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
  }
}

// What a file of proc(5) says of `name` in KiB, in bytes; 0: nothing.
std::size_t bytes_of(const char* path, const std::string& name) {
  std::ifstream file(path);
  for (std::string word; file >> word;)
    if (word == name) {
      std::size_t kib = 0;
      file >> kib;
      return kib << 10;
    }
  return 0;
}

class Limits : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Limits, Limits, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

TEST_P(Limits, MemoryThatNoMachineHasIsRefusedOnEveryRank) {
  constexpr std::size_t kMax = std::numeric_limits<std::size_t>::max();
  Communicator::run_threads(
      2,
      [](Communicator& world) {
        for (const std::size_t bytes : {kMax, kMax - 1, kMax - 4095, kMax - 4096, kMax / 2 + 1, kMax / 4})
          expect_refused(ErrorCode::system, "no room for " + std::to_string(bytes) + " bytes",
                         [&] { world.allocate(bytes); });
        Memory memory = world.allocate(8192);
        memory.as<int>()[2047] = 1;
        EXPECT_NE(world.allocate(0).data(), nullptr);
        world.barrier();
      },
      GetParam());
}

// Where it is not refused, the kernel kills processes, any of them, to find it.
TEST(SharedMemory, ThatThisMachineHasNotLeftIsRefusedOnEveryRank) {
  const auto of = [](const char* name) { return bytes_of("/proc/meminfo", name); };
  const std::uint64_t bytes = std::min(of("MemTotal:") / 4 * 5, 2 * of("MemAvailable:"));  // that may grow meanwhile
  ASSERT_GT(bytes, 0u);
  if (bytes > std::uint64_t{60} << 30) GTEST_SKIP() << "this machine has more than a rank may ask for";
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        expect_refused(ErrorCode::system, "no room for " + std::to_string(bytes) + " bytes",
                       [&] { world.allocate(bytes); });
        EXPECT_NE(world.allocate(8192).data(), nullptr);
      },
      "shm");
}

// Not by enumerators but by numbers, as a program has them that was compiled against another version.
TEST(Numbers, ThatNoEnumeratorHasAreRefusedAndTheCommunicatorStaysUsable) {
  Communicator::run_threads(3, [](Communicator& world) {
    std::vector<float> in(30), out(90);
    const auto refused = [](const std::string& words, const std::function<void()>& call) {
      expect_refused(ErrorCode::invalid_argument, words, call);
    };
    for (const int number : {30, 31, 99, 255}) {
      const auto dtype = static_cast<DType>(number);
      const auto op = static_cast<Op>(number);
      const auto order = static_cast<Order>(number);
      const auto algorithm = static_cast<Algorithm>(std::max<std::size_t>(number, all_algorithms().size() + 1));
      const auto collective = static_cast<Collective>(number);
      const std::string said = std::to_string(number);
      refused("all_reduce: there is no element type " + said,
              [&] { world.all_reduce(in.data(), out.data(), 30, dtype, Op::sum); });
      refused("all_gather: there is no element type " + said,
              [&] { world.all_gather(in.data(), out.data(), 30, dtype); });
      refused("broadcast: there is no element type " + said, [&] { world.start_broadcast(in.data(), 0, dtype, 0); });
      refused("operator " + said, [&] { world.reduce_scatter(out.data(), in.data(), 30, DType::float32, op); });
      refused("order " + said, [&] { world.all_reduce(std::span(in), Op::sum, {.order = order}); });
      refused("order " + said, [&] { world.barrier({.order = order}); });
      refused("there is no algorithm " + std::to_string(static_cast<int>(algorithm)),
              [&] { world.start_barrier({.algorithm = algorithm}); });
      refused("collective " + said, [&] { world.choose(collective, 30, DType::float32); });
      refused("element type " + said, [&] { world.choose(Collective::all_reduce, 30, dtype); });
      refused("order " + said, [&] { world.choose(Collective::all_reduce, 30, DType::float32, order); });
      refused("kind of memory " + said, [&] {
        world.all_reduce({in.data(), static_cast<MemoryKind>(number), 0}, out.data(), 30, DType::float32, Op::sum);
      });
      refused("there is no element type " + said, [&] { static_cast<void>(size_of(dtype)); });
      refused("there is no element type " + said, [&] { static_cast<void>(accumulation_size_of(dtype)); });
      EXPECT_EQ(to_string(dtype), "?");
      EXPECT_EQ(to_string(algorithm), "?");
    }
    world.all_reduce(std::span(in), Op::sum);
    world.barrier();
  });
}

TEST(Counts, WhoseBytesNoSizeHoldsAreRefused) {
  Communicator::run_threads(3, [](Communicator& world) {
    std::vector<float> in(30), out(90);
    for (const std::size_t count : {std::size_t{1} << 47, std::size_t{1} << 62, (std::size_t{1} << 63) + 1,
                                    std::numeric_limits<std::size_t>::max()}) {
      const std::string words = "a count of " + std::to_string(count) + " is too large";
      const auto refused = [&](const std::function<void()>& call) {
        expect_refused(ErrorCode::invalid_argument, words, call);
      };
      refused([&] { world.all_gather(in.data(), out.data(), count, DType::float64); });
      refused([&] { world.reduce_scatter(in.data(), out.data(), count, DType::int8, Op::sum); });
      refused([&] { world.choose(Collective::all_reduce, count, DType::float64); });
      refused([&] { world.choose(Collective::all_gather, count, DType::float64); });
    }
    world.barrier();
  });
}

// The most that the environment may say, and the most that a program can.
TEST(Timeouts, ThatAreAsLongAsTheyCanBeAreKept) {
  for (const std::string transport : {"shm", "tcp"})
    for (const std::chrono::milliseconds most :
         {std::chrono::milliseconds(1'000'000'000s), std::chrono::milliseconds::max()}) {
      Settings settings{
          .timeout = most, .connect_timeout = most, .join_timeout = most, .warn_after = most, .transport = transport};
      const auto thrown = outcomes(2, settings, [](Communicator& world) {
        std::int32_t value = 1;
        world.all_reduce(std::span(&value, 1), Op::sum);
        if (world.rank() == 1) std::this_thread::sleep_for(10ms);  // so that the other watches
        world.all_reduce(std::span(&value, 1), Op::sum);
        EXPECT_EQ(value, 4);
      });
      for (const auto& error : thrown)
        EXPECT_FALSE(error) << transport << ", " << most.count() << " ms: " << error->what();
    }
}

std::size_t address_space() { return bytes_of("/proc/self/status", "VmSize:"); }

TEST(Jobs, TwentyOfOneProcessTakeLittleAddressSpace) {
  constexpr int kJobs = 20, kRanks = 2;
  constexpr std::size_t kCount = 10'000;
  std::vector<std::shared_ptr<Store>> stores;
  for (int job = 0; job < kJobs; ++job) stores.push_back(make_memory_store());
  const std::size_t before = address_space();
  ASSERT_GT(before, 0u);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank)
    threads.emplace_back([&, rank] {
      std::vector<Communicator> jobs;
      std::vector<Memory> memory;
      for (const auto& store : stores) {
        jobs.push_back(Communicator::join({.rank = rank, .size = kRanks, .transport = "shm"}, *store));
        memory.push_back(jobs.back().allocate(kCount * 4));
        auto* const values = static_cast<std::int32_t*>(memory.back().data());
        std::fill_n(values, kCount, 1);
        jobs.back().all_reduce(values, values, kCount, DType::int32, Op::sum);
        EXPECT_EQ(std::count(values, values + kCount, kRanks), kCount);
      }
      EXPECT_LT(address_space() - before, std::size_t{50} << 30);
      for (Communicator& job : jobs) job.barrier();
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tutti::internal
