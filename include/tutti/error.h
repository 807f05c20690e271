// The one exception type of the library.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace tutti {

enum class ErrorCode : std::uint8_t {
  invalid_argument,  // the caller's own arguments or settings are wrong
  unsupported,       // well formed, but this build, machine or algorithm cannot do it
  mismatch,          // two ranks made different calls
  peer_lost,         // a peer died, its connection closed, or it was silent for 3 times Settings::connect_timeout
  peer_left,         // a peer finished and left while this rank still waits for it
  timeout,           // a deadline passed
  unreachable,       // joining only: rank 0 could not be reached
  refused,           // authentication or admission failed
  aborted,           // a rank called abort(), threw in run_threads(), or exited
  system,            // the operating system, CUDA or an RDMA device refused something
};

const char* to_string(ErrorCode code);

// Who, what, where: `what()` is a sentence for a person, the members are for programs. A member that does not apply is
// -1 or empty. communicator.h says which errors leave a communicator usable. All others are final: the rank that finds
// one tells the others, whose calls end with the same code unless they have failed already, and every later call on the
// communicator throws it again.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode kind, const std::string& message) : std::runtime_error(message), code(kind) {}
  Error(ErrorCode kind, const std::string& message, int reporting_rank, int about_peer, std::string in_operation = {},
        int at_step = -1)
      : std::runtime_error(message),
        code(kind),
        rank(reporting_rank),
        peer(about_peer),
        operation(std::move(in_operation)),
        step(at_step) {}

  ErrorCode code;
  int rank = -1;          // the rank that reports
  int peer = -1;          // the rank that it is about, or that told this one
  std::string operation;  // "all_reduce #412 (float32 x 1048576, sum)"
  int step = -1;          // index in this rank's schedule
};

}  // namespace tutti
