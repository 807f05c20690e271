// The memory behind Communicator::allocate(), and behind what the library itself needs of that kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "transport/shm/segment.h"
#include "transport/verbs/registry.h"

namespace tutti::runtime {

// Memory from the symmetric part of this rank's segment; plain memory where the job has no shared memory. Registered
// where the job has RDMA.
class SymmetricMemory {
 public:
  SymmetricMemory(std::shared_ptr<shm::Segment> segment, std::size_t bytes);  // plain memory without a segment
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  void register_with(verbs::Registry& registry) {
    if (bytes_ > 0) registration_ = registry.add(data_, bytes_);
  }

 private:
  std::shared_ptr<shm::Segment> segment_;
  std::uint64_t offset_ = 0;
  std::size_t bytes_;
  std::byte* data_;
  std::shared_ptr<void> registration_;
  const int process_;  // a forked child must not give back what is its parent's
};

}  // namespace tutti::runtime
