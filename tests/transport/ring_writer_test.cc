#include "transport/shm/ring_writer.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "transport/shm/lane.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kFragment = 64 << 10;
constexpr std::int64_t kSlowNs = 30'000, kFastNs = 6'000;  // a fragment between far cores, and near ones

void judge(RingWriter& writer, std::int64_t ns, int times) {
  for (int i = 0; i < times; ++i) writer.judge(kFragment, ns);
}

RingWriter warm() {
  RingWriter writer;
  judge(writer, kSlowNs, static_cast<int>(kMaxRingBytes / kFragment));
  return writer;
}

TEST(RingWriter, DoesNotTakeTheFirstTimeRoundForDistance) { EXPECT_FALSE(warm().passes_cache(kFragment)); }

TEST(RingWriter, PassesTheCacheOnceCopiesKeepBeingSlow) {
  RingWriter writer = warm();
  judge(writer, kSlowNs, 3);
  judge(writer, kFastNs, 1);
  EXPECT_FALSE(writer.passes_cache(kFragment)) << "an interruption or three";
  judge(writer, kSlowNs, 2);
  EXPECT_TRUE(writer.passes_cache(kFragment));
  EXPECT_FALSE(writer.passes_cache(4096)) << "little is sooner there through the cache";
  judge(writer, kFastNs, 8);
  EXPECT_FALSE(writer.passes_cache(kFragment)) << "the cores have moved together";
}

TEST(RingWriter, CopiesTheSameBytesEitherWay) {
  alignas(64) static std::byte to[2 * kFragment];
  std::vector<std::byte> from(2 * kFragment + 64);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 7 + i / 251);
  for (const bool far : {false, true}) {
    RingWriter writer = warm();
    if (far) judge(writer, kSlowNs, 8);
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{63}, std::size_t{16384}, std::size_t{16385},
                                    kFragment - 1, kFragment, 2 * kFragment}) {
      for (const std::size_t shift : {0, 1, 3, 32}) {
        std::memset(to, 0, sizeof to);
        writer.copy(to, from.data() + shift, bytes);
        ASSERT_EQ(std::memcmp(to, from.data() + shift, bytes), 0) << bytes << " bytes from " << shift;
        ASSERT_TRUE(bytes == sizeof to || to[bytes] == std::byte{0});
      }
    }
  }
}

}  // namespace
}  // namespace tutti::internal::shm
