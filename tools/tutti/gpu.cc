#include "gpu.h"

#include <stdexcept>

namespace tutti::tools {

cuda::Device require_gpu(int rank) {
  const cuda::Devices found = cuda::find_devices();
  if (found.usable.empty()) throw std::runtime_error("--device cuda: " + found.why_none());
  return found.usable[static_cast<std::size_t>(rank) % found.usable.size()];
}

}  // namespace tutti::tools
