// For tests of what ranks do in time. A rank may get no processor for a second or two: a test must not fail by that.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>
#include <thread>

#include "tutti/communicator.h"

namespace tutti::internal {

// A timeout that is to run out where one rank is late and all others must be in time.
inline constexpr std::chrono::milliseconds kRunsOut{2500};

// For a rank that is to be late: until the others have given it up, 20 s at most.
inline void wait_for_failure(const Communicator& world) {
  for (int i = 0; i < 20'000 && !world.failure(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

// How many ranks have come to a point of the test. They are threads; or Processes, if this was made before them.
class Arrivals {
 public:
  Arrivals() {
    void* const at = ::mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) throw std::bad_alloc();
    count_ = new (at) std::atomic<int>(0);
  }
  ~Arrivals() { ::munmap(count_, sizeof *count_); }
  Arrivals(const Arrivals&) = delete;
  Arrivals& operator=(const Arrivals&) = delete;

  void add() const { ++*count_; }
  // Whether so many have come; waits 20 s for them at most.
  [[nodiscard]] bool wait_for(int many) const {
    for (int i = 0; i < 20'000 && *count_ < many; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return *count_ >= many;
  }

 private:
  std::atomic<int>* count_ = nullptr;
};

// That something takes less than a limit. It is tried three times at most: once must be quick enough.
class Tries {
 public:
  explicit Tries(std::chrono::milliseconds limit) : limit_(limit) {}

  // Before each try: whether it is needed. If all were too slow, the test fails.
  bool go_on() {
    if (least_ < limit_ || testing::Test::HasFailure()) return false;
    if (made_ == kMost) {
      ADD_FAILURE() << "the quickest of " << kMost << " tries took " << least_ / std::chrono::milliseconds(1) << " ms";
      return false;
    }
    ++made_;
    return true;
  }
  void took(std::chrono::steady_clock::duration time) { least_ = std::min(least_, time); }

 private:
  static constexpr int kMost = 3;
  const std::chrono::steady_clock::duration limit_;
  std::chrono::steady_clock::duration least_ = std::chrono::steady_clock::duration::max();
  int made_ = 0;
};

}  // namespace tutti::internal
