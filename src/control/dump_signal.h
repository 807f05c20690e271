// The signal at which ranks write down what they have called.
#pragma once

#include <cstdint>

namespace tutti::internal {

// Takes a signal for as long as it lives, and counts how often it comes. What handled the signal before still does, but
// for what the system does by itself. Thread-safe; several ranks of one process may take the same signal.
class DumpSignal {
 public:
  explicit DumpSignal(int signal);  // 0: none
  ~DumpSignal();
  DumpSignal(const DumpSignal&) = delete;
  DumpSignal& operator=(const DumpSignal&) = delete;

  bool came();  // since the last look

 private:
  const int signal_;
  std::uint32_t seen_ = 0;
};

}  // namespace tutti::internal
