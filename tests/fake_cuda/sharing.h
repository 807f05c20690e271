// What threads share: with just the order that CUDA promises, or with none.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace tutti::internal::fake {

// A number that ascends. All before raise(n) happens before what follows has(n) or await(n), and that is all that
// ThreadSanitizer learns: a mutex, a semaphore or std::atomic::wait() would order the waiting before the raising as
// well, and hide races between streams.
class Counter {
 public:
  void raise(std::uint32_t to) {
    value_.store(to, std::memory_order_release);
    ::syscall(SYS_futex, word(), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
  }
  bool has(std::uint32_t n) const {
    if (!reaches(value_.load(std::memory_order_relaxed), n)) return false;
    value_.load(std::memory_order_acquire);
    return true;
  }
  void await(std::uint32_t n) const {
    wait_unordered(n);
    has(n);
  }
  // Orders nothing.
  void wait_unordered(std::uint32_t n) const {
    for (;;) {
      const std::uint32_t value = value_.load(std::memory_order_relaxed);
      if (reaches(value, n)) return;
      ::syscall(SYS_futex, word(), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
    }
  }

 private:
  static bool reaches(std::uint32_t value, std::uint32_t n) { return static_cast<std::int32_t>(value - n) >= 0; }
  const std::uint32_t* word() const { return reinterpret_cast<const std::uint32_t*>(&value_); }

  std::atomic<std::uint32_t> value_{0};
};

// What threads read and write without being ordered by it.
template <class T>
class Relaxed {
 public:
  Relaxed(T value) : value_(value) {}
  operator T() const { return value_.load(std::memory_order_relaxed); }
  Relaxed& operator=(T value) {
    value_.store(value, std::memory_order_relaxed);
    return *this;
  }
  T fetch_add(T more) { return value_.fetch_add(more, std::memory_order_relaxed); }

 private:
  std::atomic<T> value_;
};

}  // namespace tutti::internal::fake
