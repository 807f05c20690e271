// What CUDA keeps for a process, and for each of its threads.
#pragma once

#include <array>
#include <deque>
#include <mutex>
#include <optional>

#include "fake_cuda/fake_cuda.h"
#include "fake_cuda/regions.h"
#include "fake_cuda/stream.h"

namespace tutti::internal::fake {

class Process {
 public:
  Relaxed<bool> one_queue{false}, one_lock{false};
  std::mutex lock;
  Regions regions;
  Relaxed<int> device_count{1};  // or kNoDriver
  Relaxed<bool> started{false};  // a call has started the driver
  std::array<Device, kMaxDevices> devices{Device(0), Device(1), Device(2), Device(3),
                                          Device(4), Device(5), Device(6), Device(7)};

  // Counts the call; what it was told to fail with, if it was.
  cudaError_t count(Call call);
  void fail(Call call, std::uint64_t nth, cudaError_t error);
  std::uint64_t counted(Call call) const { return faults_[static_cast<std::size_t>(call)].calls; }

  Event& create_event(Device& device, bool timed);
  int live_events();
  void finish();  // all that was put on any stream
  void reset();

 private:
  struct Fault {
    Relaxed<std::uint64_t> calls{0}, failing{0};
    Relaxed<cudaError_t> error{cudaSuccess};
  };
  std::array<Fault, 6> faults_;
  std::mutex creating_;
  std::deque<Event> events_;
};

Process& process();

// Of the calling thread.
struct Thread {
  int device = 0;
  bool has_context = false;  // or the device is its own by name only
  cudaError_t last_error = cudaSuccess;
  bool in_host_function = false;  // where no function of CUDA may be called
};
Thread& this_thread();

Device& current_device();
// Of a handle: nullptr and cudaStreamLegacy are the current device's default stream. Nothing if it is none that lives.
Stream* stream_of(cudaStream_t handle);
cudaStream_t handle_of(Stream& stream);
Event* event_of(cudaEvent_t handle);

bool fails_the_device(cudaError_t error);

// Every function of CUDA's is in one while it is called, where there is one lock; but not while it synchronizes.
class InDriver {
 public:
  InDriver() : locks_(process().one_lock) {
    if (locks_) process().lock.lock();
  }
  ~InDriver() {
    if (locks_) process().lock.unlock();
  }
  InDriver(const InDriver&) = delete;
  InDriver& operator=(const InDriver&) = delete;

 private:
  const bool locks_;
};
class Synchronizing {
 public:
  Synchronizing() : unlocks_(process().one_lock) {
    if (unlocks_) process().lock.unlock();
  }
  ~Synchronizing() {
    if (unlocks_) process().lock.lock();
  }
  Synchronizing(const Synchronizing&) = delete;
  Synchronizing& operator=(const Synchronizing&) = delete;

 private:
  const bool unlocks_;
};

// Whether the process may use the device at all, and starts it if so.
cudaError_t enter();
cudaError_t remembered(cudaError_t error);

// A function of the runtime library: `body` unless the device cannot be used or has failed, and for the thread to
// remember.
template <class Body>
cudaError_t call(const Body& body) {
  const InDriver in_driver;
  if (const cudaError_t error = enter(); error != cudaSuccess) return remembered(error);
  if (current_device().failure() != cudaSuccess) return current_device().failure();
  return remembered(body());
}

// Puts `work` on the stream as one call of that kind, which fails as it was told to.
cudaError_t enqueue(Call kind, Stream& stream, Stream::Work work);

}  // namespace tutti::internal::fake
