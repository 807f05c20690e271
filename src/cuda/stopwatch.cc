#include "cuda/stopwatch.h"

#include <cuda_runtime_api.h>

#include "cuda/check.h"

namespace tutti::internal::cuda {

Stopwatch::Stopwatch(int device) : device_(device) {
  const OnDevice here(device);
  check(cudaEventCreate(&begin_));
  if (const cudaError_t error = cudaEventCreate(&end_); error != cudaSuccess) {
    cudaEventDestroy(begin_);
    check(error);
  }
}
Stopwatch::~Stopwatch() {
  const OnDevice here(device_, std::nothrow);
  cudaEventDestroy(end_);
  cudaEventDestroy(begin_);
}

void Stopwatch::start(Stream stream) {
  const OnDevice here(device_);
  check(cudaEventRecord(begin_, stream));
}
void Stopwatch::stop(Stream stream) {
  const OnDevice here(device_);
  check(cudaEventRecord(end_, stream));
}
double Stopwatch::us() const {
  check(cudaEventSynchronize(end_));
  float ms = 0;
  check(cudaEventElapsedTime(&ms, begin_, end_));
  return 1e3 * static_cast<double>(ms);
}

}  // namespace tutti::internal::cuda
