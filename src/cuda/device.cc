#include "cuda/device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cuda/check.h"

namespace tutti::internal::cuda {
namespace {

// Machine code or PTX: what the oldest architecture that was built for can run, later ones can.
bool runs_here(const cudaDeviceProp& properties) {
  return 10 * properties.major + properties.minor >= TUTTI_CUDA_OLDEST;
}

}  // namespace

std::string Devices::why_none() const { return fmt::format("{}", fmt::join(reasons, "; ")); }

Devices find_devices() {
  Devices found;
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    found.reasons.push_back(describe(error));
    return found;
  }
  if (count == 0) found.reasons.push_back(describe(cudaErrorNoDevice));
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp properties{};
    if (const cudaError_t error = cudaGetDeviceProperties(&properties, i); error != cudaSuccess) {
      found.reasons.push_back(fmt::format("GPU {}: {}", i, describe(error)));
    } else if (!runs_here(properties)) {
      found.reasons.push_back(fmt::format("GPU {}, {} with compute capability {}.{}: {}", i, properties.name,
                                          properties.major, properties.minor,
                                          describe(cudaErrorNoKernelImageForDevice)));
    } else {
      found.usable.push_back(
          {i, properties.name, properties.major, properties.minor, properties.multiProcessorCount,
           properties.totalGlobalMem,
           fmt::format("{:04x}:{:02x}:{:02x}.0", properties.pciDomainID, properties.pciBusID, properties.pciDeviceID)});
    }
  }
  return found;
}

}  // namespace tutti::internal::cuda
