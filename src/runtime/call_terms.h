// What a caller's options say of how a call is made.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>

#include "control/env.h"
#include "runtime/request.h"
#include "tutti/communicator.h"

namespace tutti::internal {

// 0 stands for the one that is set elsewhere. Throws Error{invalid_argument}.
inline std::chrono::milliseconds checked_timeout(const char* what, std::chrono::milliseconds timeout) {
  if (timeout.count() == 0) [[likely]]
    return timeout;
  if (timeout.count() < 0)
    throw Error(ErrorCode::invalid_argument,
                std::string(what) + " is " + std::to_string(timeout.count()) + " ms but should not be negative");
  return std::min<std::chrono::milliseconds>(timeout, kLongestWait);
}

inline Terms terms_of(const CallOptions& options, const std::optional<Scalar>& scalar = {}) {
  return {
      .stream = options.stream, .timeout = checked_timeout("CallOptions::timeout", options.timeout), .scalar = scalar};
}

}  // namespace tutti::internal
