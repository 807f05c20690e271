// Python's end, and threads that are in the library meanwhile.
#pragma once

#include <Python.h>
#include <unistd.h>

#include <atomic>

namespace tutti_python {

inline std::atomic<bool> python_ends{false};
inline std::atomic<int> inside_python{0};

// A thread of the library may ask for the interpreter's lock while this is true and lives. After Python has begun to
// end it must not: Python would end the thread there, in the middle of the library.
class MayCallPython {
 public:
  MayCallPython() {
    ++inside_python;
    may_ = !python_ends;
  }
  MayCallPython(const MayCallPython&) = delete;
  MayCallPython& operator=(const MayCallPython&) = delete;
  ~MayCallPython() { --inside_python; }
  explicit operator bool() const { return may_; }

 private:
  bool may_;
};

// As py::gil_scoped_release, for threads of Python. If Python ends before such a thread, a daemon, comes back, it
// stands still here for ever, as from Python 3.14 on. Python before unwinds the thread, and that would end the process.
class WithoutPythonLock {
 public:
  WithoutPythonLock() : state_(PyEval_SaveThread()) {}
  WithoutPythonLock(const WithoutPythonLock&) = delete;
  WithoutPythonLock& operator=(const WithoutPythonLock&) = delete;
  ~WithoutPythonLock() {
    try {
      PyEval_RestoreThread(state_);
    } catch (...) {
      while (true) ::pause();
    }
  }

 private:
  PyThreadState* const state_;
};

}  // namespace tutti_python
