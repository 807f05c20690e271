#include "base/process_mutex.h"

#include <pthread.h>

namespace tutti::internal {
namespace {

constinit std::mutex mutexes[static_cast<int>(ProcessWide::count)];

void lock_all() {
  for (std::mutex& mutex : mutexes) mutex.lock();
}
void unlock_all() {
  for (std::mutex& mutex : mutexes) mutex.unlock();
}

}  // namespace

std::mutex& process_mutex(ProcessWide what) {
  static const int registered = ::pthread_atfork(lock_all, unlock_all, unlock_all);
  static_cast<void>(registered);
  return mutexes[static_cast<int>(what)];
}

}  // namespace tutti::internal
