#include "runtime/biased_mutex.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace tutti::runtime {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

BiasedMutex::BiasedMutex()
    : state_(membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? State::biased : State::shared) {}

void BiasedMutex::lock_shared() {
  if (state_.load(std::memory_order_acquire) != State::shared) {
    State biased = State::biased;
    state_.compare_exchange_strong(biased, State::leaving);
    // After a fork the child is not registered; but then it has one thread, which is not inside.
    membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    state_.store(State::shared);
  }
  mutex_.lock();
  while (inside_.load(std::memory_order_acquire)) ::sched_yield();  // for the last time
}

bool BiasedMutex::try_lock_shared() {
  if (state_.load(std::memory_order_acquire) != State::shared || !mutex_.try_lock()) return false;
  if (!inside_.load(std::memory_order_acquire)) return true;
  mutex_.unlock();
  return false;
}

}  // namespace tutti::runtime
