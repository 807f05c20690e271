// Where tensors live and their operations run: this process's CPU, or a GPU (trainer/cuda/gpu.h).
#pragma once

#include <cstddef>
#include <span>

#include "trainer/task.h"

namespace tutti::trainer {

// A resource; tensors on it must not outlive it. What it is given it does in that order, and may return before it is
// done. Not thread-safe; different devices may be used from different threads, cpu() from all.
class Device {
 public:
  virtual ~Device() = default;

  // Memory for data[0, count), of any content, that tasks run here can reach; none of it for another call until it is
  // released, which may be before the tasks that use it are done.
  virtual double* allocate(std::size_t count) = 0;
  virtual void release(double* data, std::size_t count) noexcept = 0;

  virtual void run(const Task& task) = 0;

  // From and to the host's memory, which is not needed any more, or there, on return.
  virtual void write(double* to, std::span<const double> from) = 0;
  virtual void read(std::span<double> to, const double* from) = 0;

  // Returns when all that was given is done. Throws what failed of it.
  virtual void finish() = 0;
};

// The host: its memory is everybody's, and run() returns when the task is done.
Device& cpu();

// data[0, size()) on a device, owned.
class Array {
 public:
  Array() = default;
  Array(Device& device, std::size_t size) : device_(&device), data_(device.allocate(size)), size_(size) {}
  Array(Device& device, std::span<const double> values) : Array(device, values.size()) { device.write(data_, values); }
  Array(Array&& other) noexcept { swap(other); }
  Array& operator=(Array&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Array() {
    if (device_ != nullptr) device_->release(data_, size_);
  }
  double* data() const { return data_; }
  std::size_t size() const { return size_; }
  std::span<double> span() const { return {data_, size_}; }  // of the device's memory

 private:
  void swap(Array& other) noexcept;

  Device* device_ = nullptr;
  double* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace tutti::trainer
