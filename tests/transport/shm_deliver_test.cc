// Messages that a rank copies to where the peer wants them, in memory that both map: also past the cache.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "memory/between_cores.h"
#include "memory/string_copy.h"
#include "transport/shm_reuse.h"

namespace tutti::internal {
namespace {

// What is known of the processor, until the end of a test.
struct Assumed {
  BetweenCores ours = between_cores();
  bool strings = copies_by_string(1 << 20);
  explicit Assumed(const BetweenCores& cores) {
    assume_between_cores(cores);
    assume_string_copies_are_quick(false);
  }
  ~Assumed() {
    assume_between_cores(ours);
    assume_string_copies_are_quick(strings);
  }
};

// Every line counts as one of a far core if `far`, else none. The first messages are long enough for a look each.
void delivers_what_it_should_and_nothing_else(bool far) {
  const Assumed assumed({.far_ns = far ? -1'000'000 : 1'000'000'000});
  constexpr std::size_t kMost = 320 << 10;
  constexpr std::byte kUntouched{0xee};
  ShmPair pair;
  pair.meet();
  shm::Segment& segment = pair.second->transport.own();
  std::byte* const memory = segment.at(segment.allocate(kMost));
  std::uint64_t number = 0;
  for (const std::size_t bytes : {128u << 10, 200'000u, 256u << 10, (128u << 10) - 1, 64u << 10, (128u << 10) + 17}) {
    for (const std::size_t at : {64, 0, 3, 64}) {
      std::fill_n(memory, kMost, kUntouched);
      const Bytes sent = message(bytes, static_cast<unsigned>(++number));
      pair.to_first->receive(number, kShmTag, memory + at, bytes);
      pair.to_first->flush();
      EXPECT_EQ(pair.to_second->reserve(kShmTag, bytes), memory + at);
      send(*pair.to_second, sent);
      ASSERT_EQ(pair.to_first->received(), number + 1) << bytes << " bytes at " << at;
      EXPECT_TRUE(std::memcmp(memory + at, sent.data(), bytes) == 0) << bytes << " bytes at " << at;
      const auto untouched = [&](std::size_t from, std::size_t to) {
        return std::all_of(memory + from, memory + to, [](std::byte b) { return b == kUntouched; });
      };
      EXPECT_TRUE(untouched(0, at) && untouched(at + bytes, kMost)) << bytes << " bytes at " << at;
    }
    EXPECT_EQ(pair.to_second->reads_from_far(128 << 10), far);
  }
}

TEST(ShmDeliver, ReachesAPeerWhoseCoreIsNear) { delivers_what_it_should_and_nothing_else(false); }
TEST(ShmDeliver, ReachesAPeerWhoseCoreIsFar) { delivers_what_it_should_and_nothing_else(true); }

}  // namespace
}  // namespace tutti::internal
