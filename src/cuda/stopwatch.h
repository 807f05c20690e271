// How long a GPU takes for what was put on a stream. Includes nothing of CUDA's, and is there without it: making one
// then throws Error{unsupported}.
#pragma once

#include "cuda/stream.h"

namespace tutti::internal::cuda {

// Two points in a stream of `device`. What CUDA refuses is Error{system}.
class Stopwatch {
 public:
  explicit Stopwatch(int device);
  ~Stopwatch();
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

  // Both return at once; stop() is for the same stream.
  void start(Stream stream);
  void stop(Stream stream);
  // Microseconds, by the GPU's clock, from when it got to the one until it got to the other. Waits for that. Throws
  // what failed before on the device.
  double us() const;

 private:
  int device_;
  CUevent_st *begin_ = nullptr, *end_ = nullptr;
};

}  // namespace tutti::internal::cuda
