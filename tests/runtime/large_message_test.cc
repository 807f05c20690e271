// Messages that the cache does not keep, which are stored past it.
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "brief.h"
#include "topology/processors.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

constexpr int kRanks = 3;

std::int32_t element(int rank, std::size_t i) {
  return static_cast<std::int32_t>(i * 7 + rank * 1'000'003u + i / 4099);
}

// So many elements that inputs and outputs of all ranks are more than the machine's largest cache.
std::size_t large_count() {
  const std::size_t known = topology::largest_cache_bytes(topology::allowed_processors().front());
  return (known > 0 ? known : 32 << 20) / (2 * kRanks * sizeof(std::int32_t)) / kRanks * kRanks + 3 * 333;
}

// The caller's two buffers: symmetric, or memory of its own that starts `skew` elements after an aligned address.
class Buffers {
 public:
  Buffers(Communicator& world, std::size_t count, bool symmetric, std::size_t skew) {
    if (symmetric) {
      symmetric_in_ = world.allocate(count * 4);
      symmetric_out_ = world.allocate(count * 4);
      in = symmetric_in_.as<std::int32_t>().data();
      out = symmetric_out_.as<std::int32_t>().data();
    } else {
      own_in_.resize(count + skew);
      own_out_.resize(count + skew);
      in = own_in_.data() + skew;
      out = own_out_.data() + skew;
    }
  }
  std::int32_t *in, *out;

 private:
  Memory symmetric_in_, symmetric_out_;
  std::vector<std::int32_t> own_in_, own_out_;
};

class LargeMessage : public testing::TestWithParam<const char*> {};

TEST_P(LargeMessage, ArrivesWholeFromAnyBuffersByEveryCollective) {
  const std::size_t total = large_count(), part = total / kRanks;
  Communicator::run_threads(
      kRanks,
      [&](Communicator& world) {
        const int rank = world.rank();
        const auto sum = [](std::size_t i) { return element(0, i) + element(1, i) + element(2, i); };
        for (const auto& [symmetric, skew] : {std::pair{true, 0}, {false, 0}, {false, 1}}) {
          if (kBrief && !symmetric && skew == 0) continue;
          Buffers buffers(world, total, symmetric, skew);
          const auto expect = [&, symmetric = symmetric](const char* what, std::size_t count, auto&& wanted) {
            for (std::size_t i = 0; i < count; ++i)
              if (buffers.out[i] != wanted(i)) {  // ASSERT_EQ of each of millions would be most of the time
                FAIL() << what << ", element " << i << ", symmetric " << symmetric;
              }
          };
          for (std::size_t i = 0; i < total; ++i) buffers.in[i] = element(rank, i);

          world.all_reduce(buffers.in, buffers.out, total, DType::int32, Op::sum);
          expect("all_reduce", total, sum);
          world.reduce_scatter(buffers.in, buffers.out, part, DType::int32, Op::sum);
          expect("reduce_scatter", part, [&](std::size_t i) { return sum(rank * part + i); });
          world.all_gather(buffers.in, buffers.out, part, DType::int32);
          expect("all_gather", total, [&](std::size_t i) { return element(static_cast<int>(i / part), i % part); });
          for (std::size_t i = 0; i < total; ++i) buffers.out[i] = element(rank, i);
          world.broadcast(buffers.out, total, DType::int32, 1);
          expect("broadcast", total, [&](std::size_t i) { return element(1, i); });
        }
      },
      GetParam());
}

INSTANTIATE_TEST_SUITE_P(Over, LargeMessage, testing::Values("shm", "tcp"),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace tutti::internal
