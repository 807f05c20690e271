// The `tutti` program on GPUs that there are not. TUTTI_FAKE_GPUS: how many (1 unless said), or -1 for no driver.
// A process that has started CUDA and then forks is stopped: on a real GPU its child could do nothing.
#include <pthread.h>

#include <cstdio>
#include <cstdlib>

#include "cuda/driver.h"
#include "fake_cuda/fake_cuda.h"
#include "program.h"

namespace {

bool has_started_cuda() {
  const tutti::internal::cuda::Driver* const driver = tutti::internal::cuda::driver();
  return driver != nullptr && driver->pointer_get_attributes(0, nullptr, nullptr, 0) != CUDA_ERROR_NOT_INITIALIZED;
}

void before_fork() {
  if (!has_started_cuda()) return;
  std::fputs("this process forks after it has started CUDA\n", stderr);
  std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  if (const char* gpus = std::getenv("TUTTI_FAKE_GPUS")) tutti::internal::fake::set_devices(std::atoi(gpus));
  pthread_atfork(before_fork, nullptr, nullptr);
  return tutti::internal::tools::run_program(argc, argv);
}
