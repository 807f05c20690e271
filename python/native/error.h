// Errors of the library, as exceptions.
#pragma once

#include <string>
#include <utility>

#include "tutti/tutti.h"

namespace tutti_python {

// What the library has said of one call. Python sees it as tutti.Error.
struct Failure {
  int code = 0;   // one of tutti_error_code_t
  int peer = -1;  // the rank that it is about; -1: none
  std::string text;
};

class FailureError {
 public:
  explicit FailureError(Failure failure) : failure_(std::move(failure)) {}
  const Failure& failure() const { return failure_; }

 private:
  Failure failure_;
};

// What this thread's last call has failed with.
Failure last_failure();

// Throws FailureError.
inline void check(tutti_result_t result) {
  if (result != TUTTI_SUCCESS) throw FailureError(last_failure());
}

}  // namespace tutti_python
