// Calls in which a rank copies once what it sends to all others of its host (Message::copies_once), or not, as its
// memory is: each rank has another kind, and changes it from call to call.
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "brief.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

// What rank `rank` gives in call number `call`, at element i.
std::uint16_t value(int rank, int call, std::size_t i) {
  return static_cast<std::uint16_t>(
      (static_cast<std::size_t>(rank) * 7919 + static_cast<std::size_t>(call) * 31 + i) * 40503u >> 3);
}

// Elements of a rank: in ordinary, symmetric or adopted memory, by turns. All ranks make theirs in the same call.
class Elements {
 public:
  Elements(Communicator& world, std::size_t count, int turn)
      : symmetric_(world.allocate(count * sizeof(std::uint16_t))), own_(count) {
    data_ = turn % 3 == 1 ? symmetric_.as<std::uint16_t>().data() : own_.data();
    if (turn % 3 == 2) adopted_ = world.adopt(data_, count * sizeof(std::uint16_t));
  }
  std::uint16_t* data() { return data_; }

 private:
  Memory symmetric_;
  std::vector<std::uint16_t> own_;
  Registration adopted_;
  std::uint16_t* data_;
};

class CopiedOnce : public testing::TestWithParam<int> {};

TEST_P(CopiedOnce, BroadcastBringsTheRootsMessageWhateverTheMemory) {
  Communicator::run_threads(
      GetParam(),
      [](Communicator& world) {
        int call = 0;
        const std::vector<std::size_t> all{32'768, 131'073, 50'001, 131'000, 524'289, 1'000'003, 140'000};
        for (const std::size_t count : std::span(all).first(kBrief ? 2 : all.size()))
          for (int root = 0; root < world.size(); ++root, ++call) {
            Elements memory(world, count, call + world.rank());
            for (int again = 0; again < 2; ++again) {
              const bool gives = world.rank() == root;
              for (std::size_t i = 0; i < count; ++i) memory.data()[i] = gives ? value(root, call + again, i) : 0;
              world.broadcast(memory.data(), count, DType::bfloat16, root, {.algorithm = Algorithm::one_shot});
              for (std::size_t i = 0; i < count; ++i)
                ASSERT_EQ(memory.data()[i], value(root, call + again, i)) << "rank " << world.rank() << ", " << count;
            }
            world.barrier();
          }
      },
      "shm");
}

TEST_P(CopiedOnce, AllGatherBringsEverybodysPartWhateverTheMemory) {
  Communicator::run_threads(
      GetParam(),
      [](Communicator& world) {
        const auto n = static_cast<std::size_t>(world.size());
        int call = 0;
        const std::vector<std::size_t> all{40'001, 70'000, 300'003, 50'000};
        for (const std::size_t count : std::span(all).first(kBrief ? 2 : all.size()))
          for (int turn = 0; turn < 3; ++turn, ++call) {
            Elements input(world, count, call + world.rank()), output(world, n * count, call / 2 + world.rank());
            Elements second(world, count, call + world.rank() + 1), second_output(world, n * count, call);
            for (std::size_t i = 0; i < count; ++i) {
              input.data()[i] = value(world.rank(), call, i);
              second.data()[i] = value(world.rank(), call + 100, i);
            }
            Work first = world.start_all_gather(input.data(), output.data(), count, DType::bfloat16);
            world.all_gather(second.data(), second_output.data(), count, DType::bfloat16);
            first.wait();
            for (std::size_t i = 0; i < n * count; ++i) {
              const int from = static_cast<int>(i / count);
              ASSERT_EQ(output.data()[i], value(from, call, i % count)) << "rank " << world.rank() << ", " << count;
              ASSERT_EQ(second_output.data()[i], value(from, call + 100, i % count)) << "rank " << world.rank();
            }
            world.barrier();
          }
      },
      "shm");
}

TEST_P(CopiedOnce, AllReduceBringsTheSumWhateverTheMemory) {
  Communicator::run_threads(
      GetParam(),
      [](Communicator& world) {
        int call = 0;
        const std::vector<std::size_t> all{40'001, 140'000, 131'073, 524'289, 1'000'003};
        for (const std::size_t count : std::span(all).first(kBrief ? 2 : all.size()))
          for (const bool in_place : {false, true}) {
            ++call;
            Elements input(world, count, call), output(world, count, call + world.rank());
            auto* const out = reinterpret_cast<std::uint8_t*>(output.data());
            auto* const in = in_place ? out : reinterpret_cast<std::uint8_t*>(input.data());
            for (std::size_t i = 0; i < 2 * count; ++i) in[i] = value(world.rank(), call, i) % 16;
            world.all_reduce(in, out, 2 * count, DType::uint8, Op::sum);
            for (std::size_t i = 0; i < 2 * count; ++i) {
              int sum = 0;
              for (int rank = 0; rank < world.size(); ++rank) sum += value(rank, call, i) % 16;
              ASSERT_EQ(out[i], sum) << "rank " << world.rank() << ", " << count << ", element " << i;
            }
            world.barrier();
          }
      },
      "shm");
}

INSTANTIATE_TEST_SUITE_P(Ranks, CopiedOnce, testing::Values(2, 3, 5, 8),
                         [](const auto& it) { return std::to_string(it.param); });

}  // namespace
}  // namespace tutti::internal
