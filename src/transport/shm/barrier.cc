#include "transport/shm/barrier.h"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <thread>

namespace tutti::internal::shm {
namespace {

bool membarrier(int command) { return ::syscall(SYS_membarrier, command, 0, 0) == 0; }

}  // namespace

bool join_barriers() { return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED); }

// Where there is none, peers fence their turns themselves, and a store that has not left its processor after a
// millisecond there is not.
void barrier_everywhere() {
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tutti::internal::shm
