// A started call.
#pragma once

#include <pybind11/pybind11.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "error.h"

namespace tutti_python {

namespace py = pybind11;

// Every function is called with the interpreter's lock, and gives it up while it waits for the library.
//
// What is not over when Python lets go of it goes on: its buffers are kept until it is (abandon()).
class Work {
 public:
  // `keep`: what must live as long as the call; None: nothing. If this thread has opened a group, the call is part of
  // it.
  Work(tutti_work_t handle, py::object keep);
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work();

  // Blocks until the call is over, or for `seconds`, if that is not negative. False: the time has passed. Throws
  // FailureError, and what a signal's handler throws: KeyboardInterrupt.
  bool wait(double seconds);
  // Whether the call is over. Does not block: while another thread waits for it, it is not over. Throws FailureError
  // only if the call is part of a group that has not ended.
  bool is_over();
  // As is_over(), but looks for `seconds`, some microseconds, in which the thread does not sleep.
  bool wait_shortly(double seconds);
  // What the call has failed with. Empty if it has not failed, or is not over.
  const std::optional<Failure>& failure() const { return failure_; }
  // How long the call waits for a peer from now on; 0: as long as its communicator says. In a group that has not ended
  // it is set when the call is waited for.
  void set_timeout(std::int64_t milliseconds);
  // From now on a thread of the library advances the call; unless it is over within `patience` seconds, in which this
  // thread does not sleep.
  void advance_by_itself(double patience);
  // Once the call is over, a thread of the library calls tell(failure), where failure is None or a tutti.Error.
  void on_complete(py::function tell);

  // Frees the works that Python has let go of, and that are over by now.
  static void free_abandoned();
  // Opens a group of calls of this thread, and ends it.
  static void start_group();
  static void end_group();

 private:
  // Without the interpreter's lock. True: the call is over.
  bool look(std::int64_t milliseconds);
  void refuse_in_group() const;
  void abandon();

  std::mutex mutex_;     // held without the interpreter's lock only
  tutti_work_t handle_;  // null: the call is over
  py::object keep_;
  const std::shared_ptr<std::atomic<bool>> group_is_open_;  // null: it is not part of a group
  std::int64_t later_timeout_ms_ = 0;
  std::optional<Failure> failure_;
};

// A thread of the library that calls Python must free nothing of the library. What Python lets go of there is freed
// later.
inline thread_local bool is_library_thread = false;

// tutti.Error of it. With the interpreter's lock.
py::object to_exception(const Failure& failure);

}  // namespace tutti_python
