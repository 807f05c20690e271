#include "fake_cuda/process.h"

#include <algorithm>

namespace tutti::internal::fake {

// Never destroyed: streams may go on until the process has ended.
Process& process() {
  static Process& the = *new Process;
  return the;
}

Thread& this_thread() {
  thread_local Thread the;
  return the;
}

cudaError_t Process::count(Call call) {
  Fault& fault = faults_[static_cast<std::size_t>(call)];
  const std::uint64_t number = fault.calls.fetch_add(1) + 1;
  if (number != fault.failing) return cudaSuccess;
  return fault.error;
}

void Process::fail(Call call, std::uint64_t nth, cudaError_t error) {
  Fault& fault = faults_[static_cast<std::size_t>(call)];
  fault.error = error;
  fault.failing = static_cast<std::uint64_t>(fault.calls) + nth;
}

Event& Process::create_event(Device& device, bool timed) {
  const std::lock_guard lock(creating_);
  return events_.emplace_back(device, timed);
}

int Process::live_events() {
  const std::lock_guard lock(creating_);
  return static_cast<int>(std::ranges::count_if(events_, [](const Event& each) { return !each.destroyed; }));
}

void Process::finish() {
  for (Device& each : devices) each.finish();
}

void Process::reset() {
  // All are told before one is waited for: they may wait for each other.
  for (Device& each : devices) each.abandon();
  for (Device& each : devices) each.end();
  for (Device& each : devices) each.clear();
  events_.clear();
  regions.clear();
  for (Fault& each : faults_) {
    each.calls = 0;
    each.failing = 0;
  }
  set_delay_seed(0);
  one_queue = false;
  one_lock = false;
  device_count = 1;
  started = false;
  this_thread() = {};
}

Device& current_device() { return process().devices[static_cast<std::size_t>(this_thread().device)]; }

Stream* stream_of(cudaStream_t handle) {
  if (handle == nullptr || handle == cudaStreamLegacy) return &current_device().legacy();
  if (handle == cudaStreamPerThread) return nullptr;  // nothing here uses it
  auto* const stream = reinterpret_cast<Stream*>(handle);
  return stream->destroyed ? nullptr : stream;
}
cudaStream_t handle_of(Stream& stream) { return reinterpret_cast<cudaStream_t>(&stream); }
Event* event_of(cudaEvent_t handle) {
  auto* const event = reinterpret_cast<Event*>(handle);
  return event == nullptr || event->destroyed ? nullptr : event;
}

bool fails_the_device(cudaError_t error) {
  switch (error) {
    case cudaErrorECCUncorrectable:
    case cudaErrorIllegalAddress:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure: return true;
    default: return false;
  }
}

cudaError_t enter() {
  Process& p = process();
  if (this_thread().in_host_function) return cudaErrorNotPermitted;
  if (p.device_count == kNoDriver) return cudaErrorInsufficientDriver;
  p.started = true;
  if (p.device_count == 0) return cudaErrorNoDevice;
  return cudaSuccess;
}

cudaError_t remembered(cudaError_t error) {
  if (error != cudaSuccess) this_thread().last_error = error;
  return error;
}

cudaError_t enqueue(Call kind, Stream& stream, Stream::Work work) {
  const cudaError_t failing = process().count(kind);
  if (failing != cudaSuccess && !fails_the_device(failing)) return failing;
  if (stream.device.failure() != cudaSuccess) return stream.device.failure();
  if (failing != cudaSuccess) work = [failing] { throw Fault{failing, "as it was told to"}; };
  stream.device.enqueue(stream, std::move(work));
  return cudaSuccess;
}

void reset() { process().reset(); }
void set_devices(int count) { process().device_count = std::clamp(count, kNoDriver, kMaxDevices); }
void set_one_queue() { process().one_queue = true; }
void set_one_lock() { process().one_lock = true; }
bool is_driver_locked() { return !std::unique_lock(process().lock, std::try_to_lock).owns_lock(); }
void set_delays(std::uint64_t seed) { set_delay_seed(seed); }
void fail(Call call, std::uint64_t nth, cudaError_t error) { process().fail(call, nth, error); }
std::uint64_t calls(Call call) { return process().counted(call); }

Outstanding outstanding() {
  Process& p = process();
  Outstanding found{p.regions.live(false), p.regions.live(true), 0, p.live_events()};
  for (Device& each : p.devices) found.streams += each.live_streams();
  return found;
}

}  // namespace tutti::internal::fake
