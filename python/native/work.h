// A started call.
#pragma once

#include <pybind11/pybind11.h>

#include <cstdint>
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
  // `keep`: what must live as long as the call; None: nothing.
  Work(tutti_work_t handle, py::object keep) : handle_(handle), keep_(std::move(keep)) {}
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;
  ~Work();

  // Blocks until the call is over, or for `seconds`, if that is not negative. False: the time has passed. Throws
  // FailureError, and what a signal's handler throws: KeyboardInterrupt.
  bool wait(double seconds);
  // Whether the call is over. Does not block. Throws nothing: see failure().
  bool is_over();
  // Likewise, but waits for it for `seconds`, in which the thread does not sleep. For some microseconds.
  bool wait_shortly(double seconds);
  // What the call has failed with. Empty if it has not failed, or is not over.
  const std::optional<Failure>& failure() const { return failure_; }
  // How long the call waits for a peer from now on; 0: as long as its communicator says.
  void set_timeout(std::int64_t milliseconds);
  // From now on a thread of the library advances the call; unless it is over within `patience` seconds, in which this
  // thread does not sleep.
  void advance_by_itself(double patience);
  // Once the call is over, a thread of the library calls tell(failure), where failure is None or a tutti.Error.
  void on_complete(py::function tell);

  // Frees the works that Python has let go of, and that are over by now.
  static void free_abandoned();

 private:
  // Without the interpreter's lock. True: the call is over.
  bool look(std::int64_t milliseconds);
  void let_go();
  void abandon();

  std::mutex mutex_;     // held without the interpreter's lock only
  tutti_work_t handle_;  // null: the call is over
  py::object keep_;
  std::optional<Failure> failure_;
};

// tutti.Error of it. With the interpreter's lock.
py::object to_exception(const Failure& failure);

}  // namespace tutti_python
