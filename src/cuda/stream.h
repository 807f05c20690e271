// Streams, events, copies, and the semaphores by which streams and the host wait for each other. Includes nothing of
// CUDA's, and is there without it: whatever makes something then throws Error{unsupported}. What CUDA refuses is
// Error{system}.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "cuda/memory.h"
#include "cuda/on_device.h"
#include "tutti/error.h"

struct CUstream_st;  // CUDA's; a cudaStream_t points to one
struct CUevent_st;

namespace tutti::internal::cuda {

using Stream = CUstream_st*;  // nullptr: the current device's default stream

// The default stream that waits for all others but those that were made not to (cudaStreamNonBlocking), and they for
// it.
Stream legacy_stream();

// Of a stream; the calling thread's current one for a default stream.
int device_of(Stream stream);

// A stream of that device, of the highest priority, which neither waits for the default stream nor is waited for.
class OwnStream {
 public:
  explicit OwnStream(int device);
  ~OwnStream();
  OwnStream(const OwnStream&) = delete;
  OwnStream& operator=(const OwnStream&) = delete;
  Stream get() const { return stream_; }
  void finish() const;  // blocks until all that was put on it is done, or the device has failed
  std::optional<Error> failure() const noexcept;  // of the device, for good; may block while another thread is in CUDA

 private:
  int device_;
  Stream stream_ = nullptr;
};

// A point in a stream.
class Event {
 public:
  explicit Event(int device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // What is on `stream` now; the stream is of the event's device.
  void record(Stream stream);
  // Whether all of that is done; true where nothing was recorded. Throws what failed before it on the device.
  bool is_done() const;
  // What comes on `stream`, of whatever device, waits for it.
  void hold(Stream stream) const;

 private:
  int device_;
  CUevent_st* event_ = nullptr;
};

// to[0, bytes) = from[0, bytes) on `stream`; either is memory of a device, or pinned, or managed. Returns at once,
// unless both are the host's.
void copy(std::byte* to, const std::byte* from, std::size_t bytes, Stream stream);

// `rows` rows of `row_bytes` each, that begin `to_stride` and `from_stride` bytes apart, between memory of a device, or
// managed, and pinned memory. Returns at once.
enum class Direction { to_device, from_device };
void copy_rows(std::byte* to, std::size_t to_stride, const std::byte* from, std::size_t from_stride,
               std::size_t row_bytes, std::size_t rows, Direction direction, Stream stream);

// Whether CUDA was told to return from a launch only when it is done (CUDA_LAUNCH_BLOCKING=1).
bool launches_block();

// Whether what is put on `stream` is being recorded into a graph, and not run.
bool is_capturing(Stream stream);

// A timeline semaphore: a number that ascends from 0, in pinned memory. Streams and the host signal it, and wait for
// it. No thread of the GPU waits: the front end of its stream does. signal(number) and has() call nothing of CUDA's.
// Either the host signals, one thread at a time, or streams do, in ascending order. What is waited for lies less than
// 2^31 ahead: then the number may go round.
class Semaphore {
 public:
  explicit Semaphore(int device);
  ~Semaphore();  // lets all go that wait for it
  Semaphore(const Semaphore&) = delete;
  Semaphore& operator=(const Semaphore&) = delete;

  void signal(std::uint32_t number);  // unless it has it
  bool has(std::uint32_t number) const;
  // When the stream, of whatever device, gets there.
  void signal(std::uint32_t number, Stream stream);
  // What comes on the stream, of whatever device, waits until it has that number.
  void hold(Stream stream, std::uint32_t number) const;

 private:
  PinnedMemory memory_;
  std::uint32_t* word_ = nullptr;
};

}  // namespace tutti::internal::cuda
