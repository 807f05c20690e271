// Where the benchmark's messages lie: in host memory, of this rank or shared with its peers, or on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "tutti/communicator.h"

namespace tutti::internal::tools {

// Host buffers: this rank's own, the same adopted by the communicator, or of Communicator::allocate().
enum class HostBuffers : std::uint8_t { own, adopted, symmetric };

// Whole pages of host memory, one at least. Throws Error{system}.
class Pages {
 public:
  explicit Pages(std::size_t bytes);
  std::byte* data() const { return own_.get(); }
  std::size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> own_;
};

class BenchMemory {
 public:
  BenchMemory() = default;
  BenchMemory(Communicator& world, std::size_t bytes, HostBuffers buffers);  // collective when symmetric
  std::byte* data() const { return own_ ? own_->data() : static_cast<std::byte*>(symmetric_.data()); }

 private:
  Memory symmetric_;
  std::optional<Pages> own_;
  Registration adopted_;
};

// Two buffers of one rank, in host memory or on a GPU, and what the host writes to them and reads of them.
class BenchBuffers {
 public:
  // Of `bytes` each, or some more. `buffers`: of host memory; symmetric ones are collective. device: whose memory it
  // is, and the calling thread's current device until the object goes; nothing: the host's.
  BenchBuffers(Communicator& world, std::size_t bytes, HostBuffers buffers, std::optional<int> device);
  ~BenchBuffers();

  std::byte* data(int which) const;  // 0 or 1; the host cannot touch what is a GPU's
  std::size_t bytes() const { return bytes_; }

  // Gives the host what lies at `at` in either buffer. Write to stage(), then put() brings it there; get() has `size`
  // bytes of what is there, until the next call. They block. For host memory it is `at` itself.
  std::byte* stage(std::byte* at) const;
  void put(std::byte* at, std::size_t size);
  const std::byte* get(std::byte* at, std::size_t size);

 private:
  struct OnGpu;
  std::size_t bytes_;
  BenchMemory host_[2];
  std::unique_ptr<OnGpu> gpu_;
};

}  // namespace tutti::internal::tools
