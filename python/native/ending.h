// Python's end, and threads of the library that call Python.
#pragma once

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

}  // namespace tutti_python
