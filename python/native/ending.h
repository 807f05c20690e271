// Whether Python is about to end.
#pragma once

#include <atomic>

namespace tutti_python {

// From then on a thread of the library must not ask for the interpreter's lock: Python would end the thread there, in
// the middle of the library.
inline std::atomic<bool> python_ends{false};

}  // namespace tutti_python
