// Versions, links and times, as a driver says them. What needs a GPU is skipped where find_devices() finds none.
#include "cuda/stopwatch.h"

#include <gtest/gtest.h>

#include "cuda/device.h"
#include "cuda/links.h"
#include "cuda/memory.h"
#include "tutti/error.h"

namespace tutti::internal::cuda {
namespace {

TEST(Versions, TheToolkitsIsThatOfThisBuild) { EXPECT_NE(versions().toolkit.find('.'), std::string::npos); }

TEST(Versions, TheDriversIsThereWhereADriverIs) { EXPECT_EQ(versions().driver.empty(), !is_possible()); }

TEST(Stopwatch, WithoutADeviceIsAnError) {
  if (!find_devices().usable.empty()) GTEST_SKIP() << "there is one";
  EXPECT_THROW(Stopwatch(0), Error);
}

TEST(GpuLinks, AreThoseOfAllPairs) {
  const Devices found = find_devices();
  if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  const std::vector<Link> links = links_among(found.usable);
  EXPECT_EQ(links.size(), found.usable.size() * (found.usable.size() - 1) / 2);
  for (const Link& link : links) EXPECT_LT(link.first, link.second);
}

TEST(GpuStopwatch, MoreWorkTakesLonger) {
  const Devices found = find_devices();
  if (found.usable.empty()) GTEST_SKIP() << found.why_none();
  const int device = found.usable.front().index;
  constexpr std::size_t kBytes = std::size_t{64} << 20;
  const DeviceMemory memory(device, 2 * kBytes);
  const OwnStream stream(device);
  Stopwatch watch(device);
  const auto us_of = [&](int copies) {
    copy(memory.data() + kBytes, memory.data(), kBytes, stream.get());
    watch.start(stream.get());
    for (int i = 0; i < copies; ++i) copy(memory.data() + kBytes, memory.data(), kBytes, stream.get());
    watch.stop(stream.get());
    return watch.us();
  };
  const double one = us_of(1), many = us_of(40);
  EXPECT_GT(one, 0);
  EXPECT_GT(many, 4 * one);
}

}  // namespace
}  // namespace tutti::internal::cuda
