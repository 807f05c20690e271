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

// Where there is no such barrier, peers fence their turns themselves, and no store takes a millisecond to leave its
// processor.
void barrier_everywhere() {
  if (!membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED)) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace tutti::internal::shm
