// What is left of channels whose fragments peers may not have read yet: such a fragment may lie in this rank's own lane
// (LineKind::reused), which is freed once it has been read.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "transport/shm/lines.h"

namespace tutti::internal::shm {

// Of one rank. Not thread-safe.
class Retired {
 public:
  explicit Retired(Segment& own) : own_(own) {}
  // Peers may still read what is left. Lanes that the directory does not have are freed with the segment, once nobody
  // has that mapped.
  ~Retired() {
    if (lines_.empty()) return;
    for (DirectoryEntry& entry : own_.directory()) entry.offset.store(0, std::memory_order_relaxed);
  }
  Retired(const Retired&) = delete;
  Retired& operator=(const Retired&) = delete;

  // Before a channel is made, so that add() needs no memory.
  void expect_one() { lines_.reserve(lines_.size() + ++expected_); }
  // Of a channel that is gone.
  void add(std::unique_ptr<Lines> lines) noexcept {
    --expected_;
    free_read();
    lines->close();
    if (!lines->are_read()) lines_.push_back(std::move(lines));
  }
  void free_read() {
    std::erase_if(lines_, [](const auto& lines) { return lines->are_read(); });
  }
  struct Adder {  // a deleter
    Retired* retired;
    void operator()(Lines* lines) const { retired->add(std::unique_ptr<Lines>(lines)); }
  };
  bool empty() const { return lines_.empty(); }

 private:
  Segment& own_;
  std::size_t expected_ = 0;
  std::vector<std::unique_ptr<Lines>> lines_;
};

}  // namespace tutti::internal::shm
