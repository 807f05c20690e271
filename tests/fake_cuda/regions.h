// The memory that fake devices know.
#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <mutex>
#include <string>

#include "fake_cuda/sharing.h"

namespace tutti::internal::fake {

// What fails a device for good. Thrown by what a stream does, and by what checks it before.
struct Fault {
  cudaError_t error;
  std::string message;
};

enum class Kind { device, pinned, registered, managed };

// [data, data + bytes) as the program addresses it; the bytes lie at `alias`, which is `data` but for device memory.
struct Region {
  Kind kind;
  int device;
  std::byte* data;
  std::size_t bytes;
  std::byte* alias;
  Region* older;
  Relaxed<bool> live{true};

  bool holds(const std::byte* at, std::size_t size) const {
    return at >= data && size <= bytes && static_cast<std::size_t>(at - data) <= bytes - size;
  }
};

// Who touches memory: a kernel of that device, or (-1) a copy. Copies reach every device; some, pageable memory too.
struct Reach {
  int kernel_of = -1;
  bool pageable = false;
};

// Streams look into it while the program changes it: they take no lock, and are ordered after the change, but not the
// change after them.
class Regions {
 public:
  // Fresh memory full of garbage, aligned to 256 bytes and to nothing more; nullptr where the device has no more.
  Region* allocate(Kind kind, int device, std::size_t bytes);
  // nullptr where a part of it is there already.
  Region* enlist(int device, std::byte* data, std::size_t bytes);
  // It must be a live one. What uses it must have ended.
  void remove(Region& region);

  const Region* holding(const void* pointer) const;  // a live one or nullptr
  Region* beginning_at(const void* pointer);         // the same
  // Where the bytes at `at` are for a host thread. Throws Fault where they may not be touched.
  std::byte* alias_of(const void* at, std::size_t bytes, const Reach& reach, const Region** found = nullptr) const;

  int live(bool registered) const;
  void clear();  // Nothing may use any.

 private:
  Region* add(Kind kind, int device, std::byte* data, std::size_t bytes, std::byte* alias);
  std::string about(const std::byte* at, std::size_t bytes) const;

  std::mutex changing_;
  std::atomic<Region*> newest_{nullptr};
};

inline constexpr std::size_t kDeviceBytes = std::size_t{4} << 30;

}  // namespace tutti::internal::fake
