// Whether a GPU that a call waits for has failed.
#pragma once

#include <chrono>
#include <future>
#include <map>
#include <optional>

#include "staging/staged_call.h"
#include "tutti/error.h"

namespace tutti::internal {

// Asks CUDA now and then, on a thread of its own: CUDA may hold up whoever asks. Under the engine's lock.
class DeviceHealth {
 public:
  static constexpr std::chrono::milliseconds kBetweenQuestions{100};

  // What `device`, one of the call's, has failed with, as far as is known; a failed device stays so. Blocks never.
  const Error* failure_of(const StagedCall& call, int device);

  // The thread that asks may be in CUDA for as long as the device does not answer. Nobody waits for it any more.
  void abandon();

 private:
  std::map<int, Error> failed_;  // for good
  std::future<std::map<int, Error>> question_;
  std::chrono::steady_clock::time_point asked_{};
};

}  // namespace tutti::internal
