// A mutex that costs the first thread that takes it no locked instruction, for as long as it is the only one.
//
// The owner says that it is inside, then looks whether the mutex is shared; a second thread says that it is shared,
// then looks whether the owner is inside. Each must see the other's word or be seen: the second thread makes that so
// for both, by having the system put a barrier into every running thread (membarrier). That is slow, and happens once:
// from then on this is a std::mutex.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace tutti::internal {

class BiasedMutex {
 public:
  BiasedMutex();  // a plain mutex from the start where the system has no such barrier

  void lock() {
    if (!enter()) lock_shared();
  }
  [[gnu::always_inline]] bool try_lock() { return enter() || try_lock_shared(); }
  // From here on a std::mutex: so that try_lock() of another thread than the first can succeed.
  void share();
  [[gnu::always_inline]] void unlock() {
    if (inside_.load(std::memory_order_relaxed) && owner_.load(std::memory_order_relaxed) == this_thread()) {
      inside_.store(false, std::memory_order_release);
    } else {
      mutex_.unlock();
    }
  }

 private:
  // One instruction; the address of a thread_local variable would be a call in the shared library.
  static const void* this_thread() { return __builtin_thread_pointer(); }
  [[gnu::always_inline]] bool enter() {
    if (state_.load(std::memory_order_acquire) != State::biased) return false;
    const void* nobody = nullptr;
    if (owner_.load(std::memory_order_relaxed) != this_thread() &&
        !owner_.compare_exchange_strong(nobody, this_thread(), std::memory_order_relaxed))
      return false;
    inside_.store(true, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (state_.load(std::memory_order_acquire) == State::biased) return true;
    inside_.store(false, std::memory_order_release);
    return false;
  }
  void lock_shared();
  bool try_lock_shared();

  enum class State : std::uint8_t { biased, leaving, shared };  // only ever forward; shared: every thread knows

  std::atomic<const void*> owner_{nullptr};
  std::atomic<bool> inside_{false};  // the owner, without mutex_
  std::atomic<State> state_;
  std::mutex mutex_;
};

}  // namespace tutti::internal
