/// @file
/// A call that has been started.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "tutti/error.h"
#include "tutti/export.h"

namespace tutti {

namespace internal {
struct AnyCall;
class Request;
}  // namespace internal

/// A started call. Movable.
///
/// **Threads.** One thread at a time uses it; any thread of the process may. But set_timeout() is thread-safe.
///
/// **Errors.** Each of test(), wait() and wait_for() throws the Error of the call, and gives the same result again when
/// it is called again.
///
/// The call advances while a thread of this rank is inside a call of the job, test() and wait() included; with
/// Progress::thread (Settings::progress) also while none is.
///
/// The buffers of the call must live and stay untouched until wait() has returned and, if the call has a stream, until
/// the stream has passed the call. Without a call (made by Work(), or moved from), test() returns true and wait()
/// returns at once.
class Work {
 public:
  TUTTI_API Work();                            ///< without a call
  TUTTI_API Work(Work&&) noexcept;             ///< takes over the call
  TUTTI_API Work& operator=(Work&&) noexcept;  ///< first waits for the call that was here, as the destructor does
  /// Blocks until the call is complete. It throws nothing: if nobody has thrown the call's error by the time the
  /// communicator is left, the error is logged then (Settings::log_sink).
  TUTTI_API ~Work();

  /// Advances what can advance, and does not block. True once the call is complete.
  TUTTI_API bool test();

  /// Blocks until the call is complete.
  TUTTI_API void wait();

  /// Blocks until the call is complete, but no longer than `limit`. True once the call is complete.
  /// That time has passed is no error: the call goes on.
  TUTTI_API bool wait_for(std::chrono::milliseconds limit);

  /// How long the call waits for a peer or a GPU that does not come to it, from now on, in place of
  /// CallOptions::timeout; 0: as long as the communicator says. The time that it has waited already counts. Calls that
  /// a group of calls does in one pass have one timeout, the one that was set last. If the call is over, nothing
  /// happens.
  ///
  /// Does not block. Thread-safe: also while another thread is in wait() of the same call. Throws
  /// Error{invalid_argument} for a negative one, and in a group of calls that has not ended; the call goes on as it
  /// was.
  TUTTI_API void set_timeout(std::chrono::milliseconds timeout);

  /// Has a thread of the library complete the call, as with Progress::thread, and then call tell(error) once: nothing,
  /// or the Error of the call. The buffers are free then. May be called several times. Without a call, tells at once.
  ///
  /// `tell` must not throw. It may start calls. It must not block, and it must not end a communicator of the job:
  /// neither finalize() nor a destructor of the last Work or Communicator. The destructor of the communicator waits
  /// until `tell` has returned. Does not block itself. Throws Error{system} if there can be no thread; the call goes
  /// on.
  TUTTI_API void on_complete(std::function<void(const std::optional<Error>&)> tell);

 private:
  friend class Communicator;
  friend struct internal::AnyCall;
  explicit Work(std::shared_ptr<internal::Request> request);
  std::shared_ptr<internal::Request> request_;
};

}  // namespace tutti
