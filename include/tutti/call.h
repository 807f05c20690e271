/// @file
/// What a call takes: buffers, rows, options.
#pragma once

#include <chrono>
#include <cstddef>
#include <span>

#include "tutti/types.h"

namespace tutti {

/// Memory of this process that a call reads: a pointer, and the kind of memory. Pointers convert implicitly. A value:
/// it owns nothing.
struct ConstBuffer {
  /// The driver is asked for the kind of memory.
  ConstBuffer(const void* at) : data(at) {}
  /// The caller knows the kind of memory, and the device of device and managed memory.
  ConstBuffer(const void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  const void* data;                           ///< the first element; may be null if there are none
  MemoryKind memory = MemoryKind::automatic;  ///< the kind of memory
  int device = -1;  ///< of device and managed memory, as cudaSetDevice() takes it; -1: the driver is asked
};
/// Memory of this process that a call writes. Otherwise as ConstBuffer.
struct Buffer {
  /// The driver is asked for the kind of memory.
  Buffer(void* at) : data(at) {}
  /// The caller knows the kind of memory, and the device of device and managed memory.
  Buffer(void* at, MemoryKind kind, int on_device) : data(at), memory(kind), device(on_device) {}
  /// The same memory, to be read.
  operator ConstBuffer() const { return {data, memory, device}; }
  void* data;                                 ///< as ConstBuffer::data
  MemoryKind memory = MemoryKind::automatic;  ///< the kind of memory
  int device = -1;                            ///< as ConstBuffer::device
};

/// The rows of one buffer, which need not be of one length: row r goes to rank r, or comes from it. A value: it points
/// at the caller's arrays, which a call reads before it returns, a started one too.
struct UnequalRows {
  /// Rows of so many elements; 0 is a row too. Each begins where the one before it ends, or at its displacement.
  UnequalRows(std::span<const std::size_t> row_counts, std::span<const std::size_t> row_displacements = {})
      : counts(row_counts), displacements(row_displacements) {}
  std::span<const std::size_t> counts;         ///< elements, by row
  std::span<const std::size_t> displacements;  ///< elements from the beginning of the buffer, by row; or empty
};

/// How a call is done. Every rank must pass the same values, except `stream` and `timeout`: the call checks them.
struct CallOptions {
  Algorithm algorithm = Algorithm::automatic;  ///< the algorithm of the call
  Order order = Order::canonical;              ///< the order in which inputs are combined

  /// A cudaStream_t, or nullptr.
  ///
  /// With a stream the call returns at once. It runs after the work that the stream already has; work that the stream
  /// gets later runs after the call. Until the stream has passed the call, the buffers must live and stay untouched.
  ///
  /// With nullptr the call blocks, or is started. It runs after the work that the default streams of the buffers'
  /// devices already have. Work of other streams on the buffers must be over.
  ///
  /// Failure: it does not stop the stream. The next call on the communicator throws the failure, and so does the Work
  /// of a started call. A caller that must know whether the result is right starts the call, and waits for its Work.
  ///
  /// Blocking: a call with a stream, and a started call of device memory, may block if it is the first of its
  /// communicator, or if its message is longer than any before: then it makes pinned memory, and waits for the earlier
  /// calls of the communicator. With CUDA_LAUNCH_BLOCKING=1, and in a job of one rank, a call with a stream may always
  /// block.
  ///
  /// cudaStreamLegacy and cudaStreamPerThread name default streams here. In a build with CUDA before 12.8 the stream
  /// must be of the thread's current device. A stream that is being captured is refused with Error{unsupported}. If
  /// several communicators have calls on one stream, all ranks make these calls in one order, or they wait for each
  /// other.
  void* stream = nullptr;

  /// How long the call waits for a peer or a GPU that does not come to it, once it is its turn; 0: as long as the
  /// communicator says (set_timeout()). Ranks may differ. A call that times out ends the communicator.
  std::chrono::milliseconds timeout{0};

  /// Of a send and its receive, which must have the same: a number of the caller's choice, [0, 65536). It is checked
  /// and selects nothing. Other calls do not look at it.
  int tag = 0;
};

}  // namespace tutti
