// Calls of ranks that share processors, which end before the others have read what they copied (Plan::leaves_copies).
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>
#include <vector>

#include "brief.h"
#include "executor/copy_ring.h"
#include "runtime/ranks.h"
#include "topology/processors.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

constexpr int kCrowd = 4, kWriter = kCrowd - 1;
constexpr std::size_t kCount = 150'000;  // of float32: copied once, and in one part

// Ranks that all run on one processor.
std::vector<std::optional<Error>> crowded(const std::function<void(Communicator&)>& body) {
  Settings settings;
  settings.transport = "shm";
  const topology::Processors one = {topology::allowed_processors().front()};
  std::vector<std::optional<Error>> thrown;
  std::thread([&] {
    EXPECT_TRUE(topology::run_on(one));  // its threads inherit it
    thrown = outcomes(kCrowd, settings, body);
  }).join();
  return thrown;
}

// Whether it becomes true in time.
bool waits_for(const std::atomic<bool>& flag) {
  for (const auto until = std::chrono::steady_clock::now() + 10s; !flag; std::this_thread::sleep_for(1ms))
    if (std::chrono::steady_clock::now() > until) return false;
  return true;
}

void broadcast(Communicator& world, std::vector<float>& values) {
  world.broadcast(values.data(), values.size(), DType::float32, kWriter, {.algorithm = Algorithm::one_shot});
}

bool are(const std::vector<float>& values, float value) {
  return std::ranges::all_of(values, [&](float of) { return of == value; });
}

// The root has called, has made other use of its memory, and has left, before anybody else calls.
TEST(CopiesLeft, AreReadAfterTheirWriterHasLeft) {
  std::atomic<bool> has_left = false;
  const auto thrown = crowded([&](Communicator& world) {
    std::vector<float> values(kCount, static_cast<float>(world.rank()));
    broadcast(world, values);
    if (world.rank() != kWriter) {
      EXPECT_TRUE(waits_for(has_left));
      broadcast(world, values);
      EXPECT_TRUE(are(values, 7)) << "rank " << world.rank();
      return;
    }
    std::ranges::fill(values, 7.f);
    broadcast(world, values);
    std::ranges::fill(values, 8.f);
    { const Communicator leaves = std::move(world); }
    has_left = true;
  });
  for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
}

// A writer does not overtake its readers by more calls than its ring has places.
TEST(CopiesLeft, AreNotWrittenOverBeforeTheyAreRead) {
  std::atomic<int> calls = 0;
  constexpr int kCalls = 26, kPlaces = CopyRing::kAheadBytes / (kCount * sizeof(float));
  const auto thrown = crowded([&](Communicator& world) {
    std::vector<float> values(kCount);
    for (int call = 0; call < kCalls; ++call) {
      if (world.rank() == kWriter) {
        std::ranges::fill(values, static_cast<float>(call));
        broadcast(world, values);
        calls = call + 1;
      } else {
        if (world.rank() == 0) std::this_thread::sleep_for(5ms);
        EXPECT_LE(calls - call, kPlaces);
        broadcast(world, values);
        EXPECT_TRUE(are(values, static_cast<float>(call))) << "rank " << world.rank() << ", call " << call;
      }
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
}

// Symmetric memory is copied too if the message is short: the root makes other use of it right after the call.
TEST(CopiesLeft, AreMadeOfShortSymmetricMessagesToo) {
  std::atomic<bool> is_over = false;
  const auto thrown = crowded([&](Communicator& world) {
    constexpr std::size_t kShort = 20'000;
    Memory memory = world.allocate(kShort * sizeof(float));
    const std::span<float> values = memory.as<float>().first(kShort);
    const auto send = [&](float value) {
      std::ranges::fill(values, world.rank() == kWriter ? value : 0);
      const bool waits = world.rank() != kWriter && value > 1;
      EXPECT_TRUE(!waits || waits_for(is_over));
      world.broadcast(values.data(), kShort, DType::float32, kWriter);
      EXPECT_TRUE(std::ranges::all_of(values, [&](float of) { return of == value; })) << "rank " << world.rank();
    };
    send(1);
    send(2);
    send(3);
    std::ranges::fill(values, -1.f);
    if (world.rank() == kWriter) is_over = true;
    world.barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
}

// Short and long by turns, so that memory is outgrown while peers still read there.
TEST(CopiesLeft, AreWholeWhateverComesNext) {
  const auto thrown = crowded([&](Communicator& world) {
    const auto n = static_cast<std::size_t>(world.size());
    for (std::size_t call = 0; call < 20; ++call) {
      const std::size_t count = 33'000 + (call * 37 % 7) * 15'000;
      const auto value = static_cast<float>(call);
      std::vector<float> mine(count, value + static_cast<float>(world.rank())), all(n * count);
      if (world.rank() == static_cast<int>(call) % kCrowd) std::this_thread::sleep_for(2ms);
      world.all_gather(mine.data(), all.data(), count, DType::float32);
      std::ranges::fill(mine, -1.f);
      for (std::size_t from = 0; from < n; ++from)
        ASSERT_TRUE(std::all_of(&all[from * count], &all[from * count] + count,
                                [&](float of) { return of == value + static_cast<float>(from); }))
            << "rank " << world.rank() << ", call " << call << ", of rank " << from;
      for (std::size_t i = 0; i < call % 3; ++i) {  // some of them are made at once
        std::int32_t one = 1, sum = 0;
        world.all_reduce(&one, &sum, 1, DType::int32, Op::sum);
        ASSERT_EQ(sum, kCrowd);
      }
      if (call % 5 == 4) {
        std::vector<float> in(count, 1), sum(count);
        world.all_reduce(in.data(), sum.data(), count, DType::float32, Op::sum);
        ASSERT_TRUE(are(sum, kCrowd));
      }
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
}

// A rank fails and leaves: nobody gets other bytes than it had copied.
TEST(CopiesLeft, AreWholeOrNotThereWhereTheWriterFails) {
  std::atomic<bool> has_left = false;
  const auto thrown = crowded([&](Communicator& world) {
    std::vector<float> values(kCount, 5);
    broadcast(world, values);
    EXPECT_TRUE(are(values, 5));
    if (world.rank() == kWriter) {
      std::ranges::fill(values, 6.f);
      broadcast(world, values);
      world.abort("enough");
      { const Communicator leaves = std::move(world); }
      has_left = true;
      return;
    }
    EXPECT_TRUE(waits_for(has_left));
    broadcast(world, values);
    EXPECT_TRUE(are(values, 6));
  });
  EXPECT_FALSE(thrown[kWriter].has_value());
  for (int rank = 0; rank < kWriter; ++rank)
    if (thrown[static_cast<std::size_t>(rank)]) {
      EXPECT_EQ(thrown[static_cast<std::size_t>(rank)]->code, ErrorCode::aborted);
    }
}

// Communicators that come and go hold nothing back: 4096 channels of a rank are the most.
TEST(CopiesLeft, OfCommunicatorsThatEndAreFreed) {
  const auto thrown = crowded([&](Communicator& world) {
    std::vector<float> mine(kCount / 4, 1), all(kCount);
    for (int round = 0; round < (kBrief ? 100 : 1500); ++round) {
      Communicator some = world.split(0);
      some.all_gather(mine.data(), all.data(), mine.size(), DType::float32);
      broadcast(some, all);
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error.has_value()) << error->what();
}

}  // namespace
}  // namespace tutti::internal
