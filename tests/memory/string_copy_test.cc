#include "memory/string_copy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tutti::internal {
namespace {

class StringCopy : public testing::Test {
 protected:
  const bool was_quick_ = copies_by_string(1 << 20);
  void TearDown() override { assume_string_copies_are_quick(was_quick_); }
};

TEST_F(StringCopy, CopiesWhatItShouldAndNothingElse) {
  constexpr std::size_t kMargin = 128, kMax = 70'000;
  std::vector<std::byte> from(kMax + kMargin), to(kMax + 2 * kMargin);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 31 + i / 251);
  for (const std::size_t bytes : {0, 1, 63, 64, 65, 4097, 12'288, 65'536, 65'793}) {
    for (std::size_t at = 0; at < 64; at += 7) {
      std::fill(to.begin(), to.end(), std::byte{0xee});
      std::byte* const target = to.data() + kMargin + at;
      const std::byte* const source = from.data() + (at * 5) % 64;
      copy_by_string(target, source, bytes);
      ASSERT_TRUE(std::equal(target, target + bytes, source)) << bytes << " bytes at " << at;
      const auto is_untouched = [](std::byte b) { return b == std::byte{0xee}; };
      ASSERT_TRUE(std::all_of(to.data(), target, is_untouched)) << bytes << " bytes at " << at;
      ASSERT_TRUE(std::all_of(target + bytes, to.data() + to.size(), is_untouched)) << bytes << " bytes at " << at;
    }
  }
}

TEST_F(StringCopy, IsForLongCopiesOfProcessorsThatAreQuickAtIt) {
  EXPECT_FALSE(copies_by_string(8 << 10));
  assume_string_copies_are_quick(false);
  EXPECT_FALSE(copies_by_string(16 << 10));
  assume_string_copies_are_quick(true);
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  EXPECT_TRUE(copies_by_string(16 << 10));
#else
  EXPECT_FALSE(copies_by_string(16 << 10));
#endif
}

}  // namespace
}  // namespace tutti::internal
