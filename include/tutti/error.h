/// @file
/// The one exception type of the library.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

#include "tutti/export.h"

namespace tutti {

/// What went wrong, for programs. docs/guide/errors.md has an example of each.
enum class ErrorCode : std::uint8_t {
  invalid_argument,  ///< the caller's own arguments or settings are wrong
  unsupported,       ///< well formed, but this build, machine or algorithm cannot do it
  mismatch,          ///< two ranks made different calls
  peer_lost,         ///< a peer died, its connection closed, or it was silent for Settings::heartbeat_timeout
  peer_left,         ///< a peer finished and left while this rank still waits for it
  timeout,           ///< a deadline passed
  unreachable,       ///< joining only: rank 0 could not be reached
  refused,           ///< authentication or admission failed
  aborted,           ///< a rank called abort(), threw in run_threads(), or exited
  system,            ///< the operating system, CUDA or an RDMA device refused something
  partitioned,       ///< some ranks cannot be reached, and those that can are no majority
  expelled,          ///< the other ranks have given this one up: it was stopped or unreachable for too long
};

/// The enumerator's name; "?" for what is no enumerator.
TUTTI_API const char* to_string(ErrorCode code);

/// What the library throws. `what()` is a sentence for a person: who, what, where, and what to do. The members are for
/// programs; a member that does not apply is -1 or empty.
///
/// The documentation of Communicator says which errors leave a communicator usable. All others are final. One rank, the
/// hub, decides which final error of a communicator was the first, and every rank throws that one: with the same code,
/// `peer` and reason. (Not across a broken network: docs/design/failure.md.) Every later call on the communicator
/// throws the error again.
class TUTTI_API Error : public std::runtime_error {
 public:
  /// An error that is about no rank.
  Error(ErrorCode kind, const std::string& message) : std::runtime_error(message), code(kind) {}
  /// An error that `reporting_rank` reports about `about_peer`.
  Error(ErrorCode kind, const std::string& message, int reporting_rank, int about_peer, std::string in_operation = {},
        int at_step = -1)
      : std::runtime_error(message),
        code(kind),
        rank(reporting_rank),
        peer(about_peer),
        operation(std::move(in_operation)),
        step(at_step) {}
  Error(const Error&) = default;             ///< the same error
  Error(Error&&) = default;                  ///< the same error
  Error& operator=(const Error&) = default;  ///< the same error
  Error& operator=(Error&&) = default;       ///< the same error
  // Not inline: so the library alone has the type, and a program catches what the library throws.
  ~Error() override;  ///< frees the texts

  ErrorCode code;         ///< what went wrong
  int rank = -1;          ///< the rank that reports
  int peer = -1;          ///< the rank that the error is about, or that told this one
  std::string operation;  ///< "all_reduce #412 (float32 x 1048576, sum)"
  int step = -1;          ///< index in this rank's schedule
};

}  // namespace tutti
