#include "cuda/driver.h"

#include <dlfcn.h>

#include <optional>

namespace tutti::cuda {
namespace {

std::optional<Driver> load() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays
  if (library == nullptr) return {};
  Driver found{};
  found.pointer_get_attributes =
      reinterpret_cast<decltype(found.pointer_get_attributes)>(::dlsym(library, "cuPointerGetAttributes"));
  found.stream_wait_value =
      reinterpret_cast<decltype(found.stream_wait_value)>(::dlsym(library, "cuStreamWaitValue32_v2"));
  found.stream_write_value =
      reinterpret_cast<decltype(found.stream_write_value)>(::dlsym(library, "cuStreamWriteValue32_v2"));
  if (found.pointer_get_attributes == nullptr || found.stream_wait_value == nullptr ||
      found.stream_write_value == nullptr)
    return {};
  return found;
}

}  // namespace

const Driver* driver() {
  static const std::optional<Driver> found = load();
  return found ? &*found : nullptr;
}

}  // namespace tutti::cuda
