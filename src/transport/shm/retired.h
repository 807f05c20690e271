// What is left of channels whose messages peers may not have read yet. A fragment may lie in this rank's own lane
// (LineKind::reused), which is freed once it has been read; so is memory that messages were lent from (Channel::keep).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "transport/shm/lines.h"

namespace tutti::internal::shm {

// Of one rank. Not thread-safe.
class Retired {
 public:
  // Memory that a peer may read until it has consumed line number `line` of this rank.
  struct LentMemory {
    std::vector<std::shared_ptr<void>> memory;
    std::uint32_t line = 0;
  };

  explicit Retired(Segment& own) : own_(own) {}
  // Peers may still read what is left. Lanes that the directory does not have are freed with the segment, once nobody
  // has that mapped; and so is memory that is kept.
  ~Retired() {
    free_read();
    if (ends_.empty()) return;
    if (std::ranges::any_of(ends_, [](const End& end) { return !end.lent.memory.empty(); })) own_.keep_all(false);
    for (DirectoryEntry& entry : own_.directory()) entry.offset.store(0, std::memory_order_relaxed);
  }
  Retired(const Retired&) = delete;
  Retired& operator=(const Retired&) = delete;

  // Before a channel is made, so that add() needs no memory.
  void expect_one() { ends_.reserve(ends_.size() + ++expected_); }
  // Of a channel that is gone.
  void add(std::unique_ptr<Lines> lines, LentMemory lent) noexcept {
    --expected_;
    free_read();
    lines->close();
    End end{std::move(lines), std::move(lent)};
    if (!end.is_read()) ends_.push_back(std::move(end));
  }
  void free_read() {
    std::erase_if(ends_, [](End& end) { return end.is_read(); });
  }
  struct Adder {  // a deleter
    Retired* retired;
    LentMemory lent = {};
    void operator()(Lines* lines) { retired->add(std::unique_ptr<Lines>(lines), std::move(lent)); }
  };
  bool empty() const { return ends_.empty(); }

 private:
  struct End {
    std::unique_ptr<Lines> lines;
    LentMemory lent;
    bool is_read() const { return lines->are_read(lent.memory.empty() ? nullptr : &lent.line); }
  };

  Segment& own_;
  std::size_t expected_ = 0;
  std::vector<End> ends_;
};

}  // namespace tutti::internal::shm
