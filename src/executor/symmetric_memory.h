// The memory behind Communicator::allocate(), and behind what the library itself needs of that kind.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

namespace tutti::internal {

class SymmetricMemory {
 public:
  // `reachable`: whole_pages(bytes) that peers reach without a copy; nullptr: it takes plain memory of the system.
  SymmetricMemory(std::shared_ptr<std::byte> reachable, std::size_t bytes);
  ~SymmetricMemory();
  SymmetricMemory(const SymmetricMemory&) = delete;
  SymmetricMemory& operator=(const SymmetricMemory&) = delete;
  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // Keeps this as long as it lives itself.
  void keep(std::shared_ptr<void> registration) { registration_ = std::move(registration); }

  // Bytes of the pages that so many bytes take; at least one page, so that nobody gets a null pointer. Throws
  // Error{system} where there can be no such memory.
  static std::size_t whole_pages(std::size_t bytes);

 private:
  std::shared_ptr<std::byte> reachable_;
  std::size_t bytes_;
  std::byte* data_;
  std::shared_ptr<void> registration_;
  const int process_;  // a forked child must not give back what is its parent's
};

}  // namespace tutti::internal
