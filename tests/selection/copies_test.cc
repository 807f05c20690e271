#include <gtest/gtest.h>

#include <cstddef>

#include "selection/choose.h"

namespace tutti::internal {
namespace {

TEST(Choose, WithFewReadersOnlyLongerMessagesAreCopiedOnce) {
  constexpr Collective kAllGather = Collective::all_gather;
  constexpr std::size_t kMiddle = 512 << 10;
  for (const int here : {3, 4}) {
    EXPECT_FALSE(copies_once(kAllGather, kMiddle, here, here, true));
    EXPECT_TRUE(copies_once(kAllGather, kMiddle + 1024, here, here, true));
    EXPECT_TRUE(copies_once(Collective::all_reduce, kMiddle, here, here, true)) << "results, which are sums";
  }
  EXPECT_TRUE(copies_once(kAllGather, kMiddle, 8, 8, true));
  EXPECT_FALSE(copies_once(kAllGather, kMiddle / 2, 8, 8, true));
  EXPECT_FALSE(copies_once(kAllGather, 2 * kMiddle, 2, 2, true)) << "there is one reader";
}

TEST(Choose, BroadcastsToSeveralOthersAreCopiedOnceFromTheSizeOnAtWhichTheyGoByOneShot) {
  for (const bool crowded : {false, true}) {
    EXPECT_FALSE(copies_once(Collective::broadcast, (64 << 10) - 1, 4, 4, crowded));
    EXPECT_TRUE(copies_once(Collective::broadcast, 64 << 10, 4, 4, crowded));
    EXPECT_FALSE(copies_once(Collective::broadcast, (4 << 20) + 1, 4, 4, crowded)) << "too much memory";
    EXPECT_FALSE(copies_once(Collective::broadcast, 512 << 10, 3, 3, crowded));
    EXPECT_TRUE(copies_once(Collective::broadcast, (512 << 10) + 1, 3, 3, crowded));
  }
  EXPECT_TRUE(copies_shared(Collective::broadcast, (128 << 10) - 1, true));
  EXPECT_FALSE(copies_shared(Collective::broadcast, 128 << 10, true)) << "between far cores lending is much quicker";
  EXPECT_FALSE(copies_shared(Collective::broadcast, 64 << 10, false)) << "nobody takes turns";
  EXPECT_FALSE(copies_shared(Collective::all_gather, 64 << 10, true));
}

TEST(Choose, CrowdedRanksCopySumsOnceTheMoreTheyAre) {
  const auto copies = [](std::size_t kib, int ranks, int here, bool crowded = true) {
    return copies_once(Collective::all_reduce, kib << 10, ranks, here, crowded);
  };
  EXPECT_FALSE(copies(511, 4, 4));
  EXPECT_TRUE(copies(511, 6, 6));
  EXPECT_FALSE(copies(256, 6, 6));
  EXPECT_TRUE(copies(128, 8, 8));
  EXPECT_FALSE(copies(128, 8, 8, false)) << "not measured with a core each";
  EXPECT_TRUE(copies(1024, 8, 8, false));
  EXPECT_FALSE(copies(64, 16, 16));
  EXPECT_FALSE(copies(128, 64, 64)) << "slices of 2 KiB";
  EXPECT_FALSE(copies(128, 16, 4)) << "what counts are the ranks of the host";
  EXPECT_FALSE(copies(64 << 10, 8, 8)) << "too much memory";
  EXPECT_TRUE(copies_inputs(2 << 20, true));
  EXPECT_FALSE(copies_inputs((2 << 20) + 1, true));
  EXPECT_FALSE(copies_inputs(2 << 20, false));
}

TEST(Choose, CrowdedRanksLeaveCopiesThatTheyDoNotCombine) {
  EXPECT_TRUE(leaves_copies(Collective::all_gather, 2 << 20, true));
  EXPECT_TRUE(leaves_copies(Collective::broadcast, 2 << 20, true));
  EXPECT_FALSE(leaves_copies(Collective::all_gather, (2 << 20) + 1, true));
  EXPECT_FALSE(leaves_copies(Collective::all_gather, 2 << 20, false)) << "each has a core";
  EXPECT_FALSE(leaves_copies(Collective::all_reduce, 1 << 20, true));
}

}  // namespace
}  // namespace tutti::internal
