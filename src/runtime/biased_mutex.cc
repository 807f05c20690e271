#include "runtime/biased_mutex.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tutti::internal {
namespace {

constexpr int kYieldsBeforeSleep = 100;

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

BiasedMutex::BiasedMutex()
    : state_(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? State::biased : State::shared) {}

void BiasedMutex::share() {
  if (state_.load(std::memory_order_acquire) != State::shared) {
    State biased = State::biased;
    state_.compare_exchange_strong(biased, State::leaving);
    // A filter that was set up since may forbid it. But no store takes a millisecond to leave its processor.
    if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    state_.store(State::shared);
  }
}

void BiasedMutex::lock_shared() {
  share();
  mutex_.lock();
  // The owner is inside for the last time. A thread of a real-time class does not give way to it by yielding.
  for (int yields = 0; inside_.load(std::memory_order_acquire); ++yields) {
    if (yields < kYieldsBeforeSleep) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

bool BiasedMutex::try_lock_shared() {
  if (state_.load(std::memory_order_acquire) != State::shared || !mutex_.try_lock()) return false;
  if (!inside_.load(std::memory_order_acquire)) return true;
  mutex_.unlock();
  return false;
}

}  // namespace tutti::internal
