#include "memory/copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "memory/between_cores.h"

namespace tutti::internal {
namespace {

// Around every size at which the way of copying changes, and at every place in a line.
void copies_what_it_should_and_nothing_else() {
  constexpr std::size_t kMargin = 128, kMax = 70'000;
  std::vector<std::byte> from(kMax + kMargin), to(kMax + 2 * kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  for (const std::size_t bytes :
       {0, 1, 63, 64, 65, 255, 2047, 2048, 2049, 2112, 4097, 4353, 8192, 9001, 65'536, 65'793}) {
    const std::size_t step = bytes < 10'000 ? 1 : 13;
    for (std::size_t at = 0; at < 64; at += step) {
      for (const char* const way : {"usual", "past the cache", "fetching"}) {
        std::fill(to.begin(), to.end(), std::byte{0xee});
        std::byte* const target = to.data() + kMargin + at;
        const std::byte* const source = from.data() + (at * 7) % 64;
        if (way == std::string("fetching"))
          copy_fetching(target, source, bytes);
        else
          copy_bytes(target, source, bytes, way != std::string("usual"));
        ASSERT_EQ(std::memcmp(target, source, bytes), 0) << bytes << " bytes at " << at << ", " << way;
        const bool before = std::all_of(to.data(), target, [](std::byte b) { return b == std::byte{0xee}; });
        const bool behind =
            std::all_of(target + bytes, to.data() + to.size(), [](std::byte b) { return b == std::byte{0xee}; });
        ASSERT_TRUE(before && behind) << bytes << " bytes at " << at << ", " << way;
      }
    }
  }
}

TEST(CopyBytes, CopiesWhatItShouldAndNothingElse) {
  const BetweenCores ours = between_cores();
  for (const bool narrow : {false, true}) {
    BetweenCores cores = ours;
    cores.copies_by_narrow_vectors = narrow;
    assume_between_cores(cores);
    copies_what_it_should_and_nothing_else();
  }
  assume_between_cores(ours);
}

}  // namespace
}  // namespace tutti::internal
