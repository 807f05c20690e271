#include "cuda/driver.h"

#include <dlfcn.h>

#include <optional>

namespace tutti::internal::cuda {
namespace {

// function = that of the library; whether there is one.
template <class Function>
bool look_up(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

std::optional<Driver> load() {
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);  // stays
  if (library == nullptr) return {};
  Driver found{};
  const bool complete = look_up(library, "cuPointerGetAttributes", found.pointer_get_attributes) &&
                        look_up(library, "cuCtxGetCurrent", found.ctx_get_current) &&
                        look_up(library, "cuCtxSetCurrent", found.ctx_set_current) &&
                        look_up(library, "cuStreamWaitValue32_v2", found.stream_wait_value) &&
                        look_up(library, "cuStreamWriteValue32_v2", found.stream_write_value);
  if (!complete) return {};
  return found;
}

}  // namespace

const Driver* driver() {
  static const std::optional<Driver> found = load();
  return found ? &*found : nullptr;
}

}  // namespace tutti::internal::cuda
