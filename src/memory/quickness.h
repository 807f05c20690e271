// Whether a way of copying is quick on this machine: measured once in a process.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

namespace tutti::internal {

// The shortest of a few calls.
template <typename Body>
std::chrono::steady_clock::duration least_time(const Body& body) {
  auto least = std::chrono::steady_clock::duration::max();
  for (int round = 0; round < 8; ++round) {
    const auto start = std::chrono::steady_clock::now();
    body();
    least = std::min(least, std::chrono::steady_clock::now() - start);
  }
  return least;
}

class Quickness {
 public:
  // What measure() says. If threads ask at the same time, several may measure; all get the same answer.
  bool is_quick(bool (*measure)()) {
    Answer known = answer_.load(std::memory_order_relaxed);
    if (known == Answer::unknown) {
      const Answer measured = measure() ? Answer::yes : Answer::no;
      if (answer_.compare_exchange_strong(known, measured, std::memory_order_relaxed)) known = measured;
    }
    return known == Answer::yes;
  }
  void assume(bool quick) { answer_.store(quick ? Answer::yes : Answer::no, std::memory_order_relaxed); }

 private:
  enum class Answer : std::uint8_t { unknown, no, yes };
  std::atomic<Answer> answer_{Answer::unknown};
};

}  // namespace tutti::internal
