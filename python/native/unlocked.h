// The interpreter's lock, given up for a time.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace tutti_python {

// Gives up the interpreter's lock; its end takes it again. Where Python has ended meanwhile, a daemon thread never gets
// the lock: until 3.14 Python unwinds the thread there, and with it destructors that need the lock, or throw nothing,
// which would end the process with std::terminate(). So the thread stays here instead, until the process is gone.
class Unlocked {
 public:
  Unlocked() : thread_(PyEval_SaveThread()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (const abi::__forced_unwind&) {
      while (true) ::pause();
    }
  }

 private:
  PyThreadState* const thread_;
};

}  // namespace tutti_python
