// CUDA's errors as this library's.
#pragma once

#include <cuda_runtime_api.h>

#include <source_location>
#include <string>

namespace tutti::cuda {

// What failed, in words, and what to do about it.
std::string describe(cudaError_t error);

std::string version_text(int number);  // "13.0" of 13000, as CUDA numbers its versions

[[noreturn]] void fail(cudaError_t error, const std::source_location& where);

// Throws Error{system}, which names the place, unless the call succeeded.
inline void check(cudaError_t error, std::source_location where = std::source_location::current()) {
  if (error != cudaSuccess) fail(error, where);
}

}  // namespace tutti::cuda
