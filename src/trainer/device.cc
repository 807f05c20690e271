#include "trainer/device.h"

#include <algorithm>
#include <utility>

#include "trainer/run_task.h"

namespace tutti::trainer {
namespace {

// The one thread of a CPU.
struct HostThread {
  static constexpr std::size_t index() { return 0; }
  static constexpr std::size_t threads() { return 1; }
  static double load(const double* from) { return *from; }
  static void store(double* to, double value) { *to = value; }
};

class Cpu final : public Device {
 public:
  double* allocate(std::size_t count) override { return new double[count]; }
  void release(double* data, std::size_t) noexcept override { delete[] data; }
  void run(const Task& task) override { run_task(task, HostThread()); }
  void write(double* to, std::span<const double> from) override { std::copy(from.begin(), from.end(), to); }
  void read(std::span<double> to, const double* from) override { std::copy_n(from, to.size(), to.begin()); }
  void finish() override {}
};

}  // namespace

Device& cpu() {
  static Cpu cpu;  // has no state
  return cpu;
}

void Array::swap(Array& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
}

}  // namespace tutti::trainer
