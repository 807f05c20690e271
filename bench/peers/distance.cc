// How far the cores of the first two processors of this process are from each other, now: prints the nanoseconds that a
// cache line takes from one to the other and back. In a virtual machine that changes within seconds.
#include <emmintrin.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <vector>

int main() {
  constexpr int kRounds = 10'000, kWarm = 2'000;
  cpu_set_t may;
  if (sched_getaffinity(0, sizeof may, &may) != 0) return 1;
  std::vector<int> processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &may)) processors.push_back(cpu);
  if (processors.size() < 2) return 1;
  void* const memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  auto& turn = *static_cast<std::atomic<int>*>(memory);
  const pid_t child = fork();
  const int me = child == 0 ? 1 : 0;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(processors[me], &own);
  if (child < 0 || sched_setaffinity(0, sizeof own, &own) != 0) return 1;
  auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < kRounds; ++i) {
    if (i == kWarm) begun = std::chrono::steady_clock::now();
    while (turn.load(std::memory_order_acquire) != 2 * i + me) _mm_pause();
    turn.store(2 * i + me + 1, std::memory_order_release);
  }
  if (me == 1) return 0;
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begun;
  std::printf("%.0f\n", took.count() / (kRounds - kWarm));
  waitpid(child, nullptr, 0);
}
