#include "cuda/check.h"

#include <fmt/format.h>

#include <string_view>

#include "tutti/error.h"

namespace tutti::internal::cuda {
namespace {

std::string about_the_driver() {
  int driver = 0;
  if (cudaDriverGetVersion(&driver) != cudaSuccess || driver == 0)
    return "no NVIDIA driver is installed here (there is no libcuda.so.1); install one, or in a container start it "
           "with the "
           "host's (--gpus all)";
  return fmt::format(
      "NVIDIA's driver here serves CUDA up to {}, and this tutti was built with {}; update the driver, or build "
      "tutti with an older toolkit",
      version_text(driver), version_text(CUDART_VERSION));
}

std::string advice(cudaError_t error) {
  switch (error) {
    case cudaErrorInsufficientDriver: return about_the_driver();
    case cudaErrorNoDevice:
      return "the driver shows no GPU: see what nvidia-smi lists, that CUDA_VISIBLE_DEVICES does not hide it, and in a "
             "container that it was started with one (--gpus all)";
    case cudaErrorDevicesUnavailable:
      return "the GPU is kept by another process, or in a mode that admits none: see nvidia-smi";
    case cudaErrorMemoryAllocation: return "the GPU's memory is full: see nvidia-smi for who has it";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidKernelImage:
    case cudaErrorUnsupportedPtxVersion:
      return "this tutti holds no code for this GPU; configure it with -DTUTTI_CUDA_ARCHITECTURES= and the GPU's "
             "compute "
             "capability, as 80 for 8.0";
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchFailure:
      return "a kernel of this process, not necessarily the last, touched memory that is not its own; this process "
             "cannot use "
             "the GPU any more. compute-sanitizer names the kernel";
    default: return "";
  }
}

}  // namespace

std::string version_text(int number) { return fmt::format("{}.{}", number / 1000, number % 1000 / 10); }

std::string describe(cudaError_t error) {
  const std::string what = advice(error);
  const std::string name = fmt::format("{}, {}", cudaGetErrorName(error), cudaGetErrorString(error));
  return what.empty() ? name : fmt::format("{} ({})", what, name);
}

void fail(cudaError_t error, const char* file, int line) {
  cudaGetLastError();  // it is told here, and not again to whoever looks next
  const std::string_view path = file;
  throw Error(ErrorCode::system,
              fmt::format("CUDA: {}; at {}:{}", describe(error), path.substr(path.rfind('/') + 1), line));
}

}  // namespace tutti::internal::cuda
