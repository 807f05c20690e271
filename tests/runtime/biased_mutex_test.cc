#include "runtime/biased_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace tutti::internal {
namespace {

TEST(BiasedMutex, IsItsFirstThreadsUntilAnotherComes) {
  BiasedMutex mutex;
  mutex.lock();
  mutex.unlock();
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()) << "held"; }).join();
  mutex.unlock();
  std::thread([&] {
    mutex.lock();
    std::thread([&] { EXPECT_FALSE(mutex.try_lock()) << "held by the second"; }).join();
    mutex.unlock();
  }).join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TEST(BiasedMutex, ThreadsThatComeWhileTheOwnerIsBusyExcludeEachOther) {
  constexpr int kThreads = 4, kTimes = 3000;
  for (int repeat = 0; repeat < 20; ++repeat) {
    BiasedMutex mutex;
    long count = 0;  // guarded by it
    const auto work = [&] {
      for (int i = 0; i < kTimes; ++i) {
        mutex.lock();
        ++count;
        mutex.unlock();
      }
    };
    std::vector<std::thread> threads;
    mutex.lock();  // this thread owns it
    for (int t = 1; t < kThreads; ++t) threads.emplace_back(work);
    mutex.unlock();
    work();
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(count, kThreads * kTimes);
  }
}

}  // namespace
}  // namespace tutti::internal
