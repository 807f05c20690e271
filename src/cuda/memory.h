// Where a pointer points, and memory that a GPU can reach. Includes nothing of CUDA's, and is there without it.
#pragma once

#include <cstddef>

#include "tutti/types.h"

namespace tutti::internal::cuda {

struct Location {
  MemoryKind kind = MemoryKind::host;
  int device = -1;  // that device and managed memory were allocated on, or pinned memory for; -1: of host memory
  friend bool operator==(const Location&, const Location&) = default;
};

// Whether this process could come by device memory at all: whether a driver is installed. Starts nothing.
bool is_possible();

// As the driver knows it. Where this process has not started CUDA, all is host memory, and it stays unstarted.
// Thread-safe. What the driver does not know is host memory. Throws Error{system} where the driver has failed.
Location location_of(const void* pointer);

// Device memory of that device, aligned to 256 bytes. The destructor waits for all that the device has been given, and
// so for streams that are held (Semaphore, stream.h): whoever is to let them go must not be waiting here. Throws
// Error{system} where there is none left, Error{unsupported} in a build without CUDA.
class DeviceMemory {
 public:
  DeviceMemory(int device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;
  std::byte* data() const { return data_; }

 private:
  int device_;
  std::byte* data_ = nullptr;
};

// Host memory of that many bytes, pinned: every device copies from and to it at full speed. The destructor may wait as
// ~DeviceMemory does. Throws as DeviceMemory does.
class PinnedMemory {
 public:
  PinnedMemory(int device, std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  int device_;
  std::size_t bytes_;
  std::byte* data_ = nullptr;
};

// While it lives, the host memory [data, data + bytes) is pinned as PinnedMemory is.
// `device` is one that this process uses anyway. data: a multiple of the page size. What was put on streams to copy
// from or to it must be done before it goes; going may wait as ~DeviceMemory does. Throws as DeviceMemory does.
class Pinned {
 public:
  Pinned(int device, std::byte* data, std::size_t bytes);
  ~Pinned();
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;

 private:
  int device_;
  std::byte* data_;
};

}  // namespace tutti::internal::cuda
