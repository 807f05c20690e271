#include "gpu.h"

#include <stdexcept>

namespace tutti::tools {

cuda::Device require_gpu() {
  const cuda::Devices found = cuda::find_devices();
  if (found.usable.empty()) throw std::runtime_error("--device cuda: " + found.why_none());
  return found.usable.front();
}

}  // namespace tutti::tools
