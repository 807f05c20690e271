// Calls on memory that ranks have adopted: the bits of calls on their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "net/free_port.h"
#include "runtime/any_call.h"
#include "runtime/processes.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kPage = 4096;

// `bytes` of ordinary memory that begin `skew` bytes after a page does, and canaries around them.
class Around {
 public:
  Around(std::size_t bytes, std::size_t skew) : bytes_(bytes), skew_(skew), pages_((skew + bytes) / kPage + 2) {
    void* const at = ::mmap(nullptr, pages_ * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(at, MAP_FAILED);
    start_ = static_cast<std::byte*>(at);
    std::fill_n(start_, pages_ * kPage, std::byte{0xA5});
  }
  ~Around() { ::munmap(start_, pages_ * kPage); }
  Around(const Around&) = delete;
  Around& operator=(const Around&) = delete;

  std::byte* data() const { return start_ + skew_; }
  std::size_t bytes() const { return bytes_; }
  bool canaries_live() const {
    const auto lives = [](std::byte b) { return b == std::byte{0xA5}; };
    return std::all_of(start_, data(), lives) && std::all_of(data() + bytes_, start_ + pages_ * kPage, lives);
  }

 private:
  std::size_t bytes_, skew_, pages_;
  std::byte* start_;
};

void fill(std::byte* at, std::size_t bytes, int rank, std::size_t round) {
  std::mt19937_64 random(static_cast<std::uint64_t>(rank) * 1000 + round);
  std::uniform_real_distribution<float> values(-1, 1);
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    const float value = values(random);
    std::memcpy(at + i, &value, 4);
  }
}

// Where a rank's buffers begin on their first page: everywhere else on each.
std::size_t skew_of(int rank, std::size_t round) {
  constexpr std::size_t kSkews[]{0, 64, 16, 4092, 2048, 4};
  return kSkews[(static_cast<std::size_t>(rank) + round) % std::size(kSkews)];
}

class EveryCollective : public testing::TestWithParam<Collective> {};
INSTANTIATE_TEST_SUITE_P(Adopted, EveryCollective, testing::ValuesIn([] {
                           std::vector<Collective> all;
                           for (const CollectiveTraits& traits : kCollectives)
                             if (traits.has_bytes()) all.push_back(traits.collective);
                           return all;
                         }()),
                         [](const auto& it) { return std::string(to_string(it.param)); });

TEST_P(EveryCollective, GivesTheBitsOfOrdinaryMemoryAndTouchesNothingElse) {
  const Distribution holds(GetParam(), 3, 1);
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        const int rank = world.rank();
        std::size_t round = 0;
        for (const std::size_t count : {0u, 1u, 600u, 1024u, 2049u, 9000u, 70'001u, 300'003u}) {
          ++round;
          const std::size_t in_bytes = 4 * count * static_cast<std::size_t>(holds.input(rank).count);
          const std::size_t out_bytes = 4 * count * static_cast<std::size_t>(holds.output(rank).count);
          const CallSpec spec{.collective = GetParam(), .dtype = DType::float32, .root = 1, .count = count};
          std::vector<std::byte> own_in(in_bytes + 4), own_out(out_bytes + 4);
          fill(own_in.data(), in_bytes, rank, round);
          Around in(in_bytes, skew_of(rank, round)), out(out_bytes, skew_of(rank + 1, round));
          std::memcpy(in.data(), own_in.data(), in_bytes);
          AnyCall::run(world, spec, own_in.data(), own_out.data());
          {
            // Not all ranks adopt all of theirs.
            const Registration first = rank != 1 || round % 2 == 0 ? world.adopt(in.data(), in_bytes) : Registration();
            const Registration second =
                rank != 2 || round % 3 != 0 ? world.adopt(out.data(), out_bytes) : Registration();
            for (int again = 0; again < 2; ++again) {
              std::memset(out.data(), 0, out_bytes);
              AnyCall::run(world, spec, in.data(), out.data());
              ASSERT_EQ(std::memcmp(out.data(), own_out.data(), out_bytes), 0) << "rank " << rank << ", " << count;
              ASSERT_EQ(std::memcmp(in.data(), own_in.data(), in_bytes), 0) << "the input was written to";
            }
            world.barrier();
          }
          ASSERT_EQ(std::memcmp(out.data(), own_out.data(), out_bytes), 0) << "private again";
          ASSERT_TRUE(in.canaries_live() && out.canaries_live());
        }
      },
      "shm");
}

// Processes: what a rank shares is seen by others that have it at another address. In place, by every algorithm.
TEST(Adopted, AllReduceInPlaceOfProcesses) {
  const std::uint16_t port = free_port();
  Processes ranks(3, [&](int r, const Processes::Report& report) {
    Communicator world = Communicator::join(meeting_at(port, "shm", r, 3));
    bool right = true;
    std::size_t round = 0;
    for (const std::size_t count : {2049u, 70'001u, 1'000'003u})
      for (const Algorithm algorithm :
           {Algorithm::one_shot, Algorithm::two_shot, Algorithm::sliced_tree, Algorithm::binomial_tree}) {
        const std::size_t bytes = 4 * count;
        Around buffer(bytes, skew_of(r, ++round));
        fill(buffer.data(), bytes, r, round);
        std::vector<std::byte> own(buffer.data(), buffer.data() + bytes);
        const CallOptions options{.algorithm = algorithm};
        world.all_reduce(own.data(), own.data(), count, DType::float32, Op::sum, options);
        const Registration adopted = world.adopt(buffer.data(), bytes);
        world.all_reduce(buffer.data(), buffer.data(), count, DType::float32, Op::sum, options);
        right = right && std::memcmp(buffer.data(), own.data(), bytes) == 0 && buffer.canaries_live();
        world.barrier();
      }
    report(right ? 'y' : 'n');
  });
  for (int r = 0; r < 3; ++r) EXPECT_EQ(ranks.next_report(), 'y');
}

TEST(Adopted, WhatCannotBeIsRefusedAndTheCommunicatorStaysUsable) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        const auto refused = [&](void* data, std::size_t bytes) {
          try {
            const Registration adopted = world.adopt(data, bytes);
            return std::string("it was not");
          } catch (const Error& error) {
            EXPECT_EQ(error.code, ErrorCode::invalid_argument) << error.what();
            return std::string(error.what());
          }
        };
        EXPECT_THAT(refused(nullptr, 8), testing::HasSubstr("no memory"));
        EXPECT_THAT(refused(reinterpret_cast<void*>(kPage), ~std::size_t{0}), testing::HasSubstr("address space"));
        const Memory symmetric = world.allocate(2 * kPage);
        EXPECT_THAT(refused(symmetric.data(), 2 * kPage), testing::HasSubstr("shared already"));
        const Registration nothing = world.adopt(nullptr, 0);
        std::int32_t one = 1;
        const Registration too_small = world.adopt(&one, sizeof one);
        world.all_reduce(std::span(&one, 1), Op::sum);
        EXPECT_EQ(one, 2);
      },
      "shm");
}

// Another thread's calls go on meanwhile. Each adoption is larger than those before, so that extents are mapped.
TEST(Adopted, WhileCallsOfAnotherThreadRun) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        Communicator other = world.split(0);
        std::thread calls([&] {
          const Memory memory = other.allocate(40'000);
          std::vector<std::int32_t> own(10'000, 1);
          for (int i = 0; i < 300; ++i) {
            std::ranges::fill(memory.as<std::int32_t>(), i);
            other.all_reduce(memory.as<std::int32_t>(), Op::sum);
            ASSERT_EQ(memory.as<std::int32_t>()[9'999], 2 * i);
            std::ranges::fill(own, i);
            other.all_reduce(std::span(own), Op::sum);
            ASSERT_EQ(own[5'000], 2 * i);
          }
        });
        for (std::size_t i = 1; i <= 20; ++i) {
          Around buffer(i << 20, 64);
          const Registration adopted = world.adopt(buffer.data(), buffer.bytes());
        }
        calls.join();
      },
      "shm");
}

// Where nothing is shared, nothing changes.
TEST(Adopted, MeansNothingToOtherTransports) {
  for (const char* const transport : {"tcp", "inproc"})
    Communicator::run_threads(
        2,
        [&](Communicator& world) {
          Around buffer(10 * kPage, 0);
          std::memset(buffer.data(), 0, buffer.bytes());
          const Registration adopted = world.adopt(buffer.data(), buffer.bytes());
          auto* const values = reinterpret_cast<std::int32_t*>(buffer.data());
          values[5000] = 1 + world.rank();
          world.all_reduce(values, values, buffer.bytes() / 4, DType::int32, Op::sum);
          EXPECT_EQ(values[5000], 3);
        },
        transport);
  Communicator::run_threads(
      1,
      [](Communicator& alone) {
        Around buffer(10 * kPage, 0);
        const Registration adopted = alone.adopt(buffer.data(), buffer.bytes());
        const Registration again = alone.adopt(buffer.data(), buffer.bytes());  // so the first has changed nothing
      },
      "auto");
}

}  // namespace
}  // namespace tutti::internal
