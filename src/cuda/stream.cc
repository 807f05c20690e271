#include "cuda/stream.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>

#include "cuda/check.h"
#include "cuda/driver.h"
#include "tutti/error.h"

namespace tutti::internal::cuda {
namespace {

void check_driver(CUresult result, const char* what) {
  if (result == CUDA_ERROR_NOT_SUPPORTED)
    throw Error(ErrorCode::unsupported, std::string("CUDA: ") + what +
                                            " takes stream memory operations (cuStreamWaitValue32), which this GPU or "
                                            "its driver does not have");
  if (result != CUDA_SUCCESS)
    throw Error(ErrorCode::system,
                std::string("CUDA: ") + what + " was refused by the driver, error " + std::to_string(result));
}

}  // namespace

Stream legacy_stream() { return cudaStreamLegacy; }

int device_of(Stream stream) {
  if (stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread) return current_device();
#if CUDART_VERSION >= 12080
  int device = -1;
  check(cudaStreamGetDevice(stream, &device));
  return device;
#else
  static_cast<void>(stream);
  return current_device();
#endif
}

OwnStream::OwnStream(int device) : device_(device) {
  const OnDevice here(device);
  int least = 0, greatest = 0;
  check(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest));
}
OwnStream::~OwnStream() {
  const OnDevice here(device_, std::nothrow);
  cudaStreamDestroy(stream_);
}
void OwnStream::finish() const {
  const OnDevice here(device_, std::nothrow);
  cudaStreamSynchronize(stream_);
}
std::optional<Error> OwnStream::failure() const noexcept try {
  const OnDevice here(device_);
  const cudaError_t state = cudaStreamQuery(stream_);
  cudaGetLastError();
  if (state != cudaErrorNotReady) check(state);
  return {};
} catch (const Error& error) {
  return error;
}

Event::Event(int device) : device_(device) {
  const OnDevice here(device);
  check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
}
Event::~Event() {
  const OnDevice here(device_, std::nothrow);
  cudaEventDestroy(event_);
}

void Event::record(Stream stream) {
  const OnDevice here(device_);
  check(cudaEventRecord(event_, stream));
}
bool Event::is_done() const {
  const OnDevice here(device_);
  const cudaError_t state = cudaEventQuery(event_);
  if (state != cudaErrorNotReady) {
    check(state);
    return true;
  }
  cudaGetLastError();  // else the application would take it for an error of its own
  return false;
}
// Default streams are those of the current device.
void Event::hold(Stream stream) const {
  const OnDevice here(device_of(stream));
  check(cudaStreamWaitEvent(stream, event_, 0));
}

void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream) {
  if (bytes > 0) check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream));
}

// Said to be of the device, managed memory is copied by it wherever its pages are; else it may be the host that copies,
// and the call that waits.
void copy_rows(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride,
               std::size_t row_bytes, std::size_t rows, Direction direction, Stream stream) {
  const cudaMemcpyKind kind = direction == Direction::to_device ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
  if (row_bytes == 0 || rows == 0) return;
  if (rows == 1 || (to_stride == row_bytes && from_stride == row_bytes))
    return check(cudaMemcpyAsync(to, from, row_bytes * rows, kind, stream));
  constexpr std::size_t kLargestPitch = 0x7fffffff;
  if (std::max(to_stride, from_stride) > kLargestPitch) {
    for (std::size_t row = 0; row < rows; ++row)
      check(cudaMemcpyAsync(to + row * to_stride, from + row * from_stride, row_bytes, kind, stream));
    return;
  }
  check(cudaMemcpy2DAsync(to, to_stride, from, from_stride, row_bytes, rows, kind, stream));
}

bool launches_block() {
  const char* const value = std::getenv("CUDA_LAUNCH_BLOCKING");
  return value != nullptr && std::atoi(value) != 0;
}

bool is_capturing(Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status));
  return status != cudaStreamCaptureStatusNone;
}

Semaphore::Semaphore(int device)
    : memory_(device, sizeof *word_), word_(reinterpret_cast<std::uint32_t*>(memory_.data())) {
  if (driver() == nullptr) throw Error(ErrorCode::unsupported, "CUDA: this driver cannot hold a stream for the host");
  std::atomic_ref(*word_).store(0, std::memory_order_relaxed);
}
// The memory goes when no stream looks at it any more.
Semaphore::~Semaphore() { signal(std::atomic_ref(*word_).load(std::memory_order_relaxed) + 0x7fffffff); }

void Semaphore::signal(std::uint32_t number) {
  if (!has(number)) std::atomic_ref(*word_).store(number, std::memory_order_release);
}
bool Semaphore::has(std::uint32_t number) const {
  return static_cast<std::int32_t>(std::atomic_ref(*word_).load(std::memory_order_acquire) - number) >= 0;
}
void Semaphore::signal(std::uint32_t number, Stream stream) {
  const OnDevice here(device_of(stream));
  check_driver(
      driver()->stream_write_value(stream, reinterpret_cast<CUdeviceptr>(word_), number, CU_STREAM_WRITE_VALUE_DEFAULT),
      "signalling from a stream");
}
void Semaphore::hold(Stream stream, std::uint32_t number) const {
  const OnDevice here(device_of(stream));
  check_driver(
      driver()->stream_wait_value(stream, reinterpret_cast<CUdeviceptr>(word_), number, CU_STREAM_WAIT_VALUE_GEQ),
      "holding a stream");
}

}  // namespace tutti::internal::cuda
