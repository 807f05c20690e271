// CUDA's errors as this library's.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

namespace tutti::internal::cuda {

// What failed, in words, and what to do about it.
std::string describe(cudaError_t error);

std::string version_text(int number);  // "13.0" of 13000, as CUDA numbers its versions

[[noreturn]] void fail(cudaError_t error, const char* file, int line);

// Throws Error{system}, which names the place, unless the call succeeded. Clang 14 has no std::source_location.
inline void check(cudaError_t error, const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
  if (error != cudaSuccess) fail(error, file, line);
}

}  // namespace tutti::internal::cuda
