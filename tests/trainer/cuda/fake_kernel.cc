// The trainer's kernel on a fake device: run_task() by the CPU, thread after thread.
#include "fake_cuda/kernel.h"
#include "trainer/cuda/launch.h"
#include "trainer/run_task.h"

namespace tutti::trainer {
namespace {

class FakeThread {
 public:
  FakeThread(std::size_t index, std::size_t threads, internal::cuda_test::Memory& memory)
      : index_(index), threads_(threads), memory_(memory) {}
  std::size_t index() const { return index_; }
  std::size_t threads() const { return threads_; }
  double load(const double* from) const {
    return *reinterpret_cast<const double*>(memory_.load(reinterpret_cast<const std::byte*>(from), sizeof(double)));
  }
  void store(double* to, double value) const {
    *reinterpret_cast<double*>(memory_.store(reinterpret_cast<std::byte*>(to), sizeof(double))) = value;
  }

 private:
  std::size_t index_, threads_;
  internal::cuda_test::Memory& memory_;
};

}  // namespace

const void* task_kernel() {
  static const auto& kernel = *[] {  // never destroyed: streams may go on until the process has ended
    auto* const made = new internal::fake::Kernel;
    made->parameter_bytes = sizeof(Task);
    made->run = [](const void* parameter, const internal::fake::Grid& grid, internal::cuda_test::Memory& memory) {
      const Task& task = *static_cast<const Task*>(parameter);
      for (const std::size_t thread : grid.threads) run_task(task, FakeThread(thread, grid.threads.size(), memory));
    };
    return made;
  }();
  return &kernel;
}

}  // namespace tutti::trainer
