// What a rank has called on one communicator, when, and for whom it waits there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "control/call_times.h"
#include "types/tag.h"

namespace tutti::internal {

// Calls of one kind in a row.
struct CallRow {
  std::uint32_t first = 0;  // the number of the first
  Tag kind{};               // a tag with sequence 0
};

// A call of the history. A time of 0: the call is not over.
struct RecordedCall {
  Tag tag;
  CallTimes::Times ticks;
};

// For whom a call waits.
struct CallWait {
  std::uint32_t sequence = 0;
  std::int32_t peer = -1;  // of the communicator
  std::int32_t step = -1;
  std::uint32_t takes = 0;    // 1: the peer is to take what was sent to it; 0: it is to send
  std::int64_t since_ns = 0;  // of the steady clock: nothing has moved since
};

// The flight recorder of one communicator, where the control thread can read it without disturbing the rank. All
// members are thread-safe, and lock-free for the one writer. Calls of one kind in a row are one entry. Memory is made
// for entries as they come.
class CallHistory {
 public:
  static constexpr std::uint32_t kKept = 1024;  // entries

  // The calls from `sequence` on are of this kind, a tag with sequence 0. Before entered(sequence). May throw
  // std::bad_alloc; nothing has changed then.
  void begins(std::uint32_t sequence, const Tag& kind);
  void entered(std::uint32_t sequence) { entered_.store(sequence, std::memory_order_release); }
  void completed(std::uint32_t sequence) { completed_.store(sequence, std::memory_order_release); }
  CallTimes& times() { return times_; }             // for the writer's clock
  bool at(std::uint32_t sequence, Tag& tag) const;  // false: not entered, or too long ago to say
  bool is_ahead_of(std::uint32_t sequence) const;
  Tag last_completed() const;

  std::uint32_t entered() const { return entered_.load(std::memory_order_acquire); }
  std::uint32_t completed() const { return completed_.load(std::memory_order_acquire); }
  // At most so many of the last calls, the oldest first.
  std::vector<RecordedCall> last(std::uint32_t most) const;
  // At most so many of the last rows, the oldest first.
  std::vector<CallRow> last_rows(std::uint32_t most) const;
  TickScale::Now now() const { return scale_.now(); }

  void waits(const CallWait& wait);
  void waits_no_more() { wait_version_.store(0, std::memory_order_release); }
  std::optional<CallWait> waiting() const;

 private:
  static constexpr std::uint32_t kRows = 16, kPages = kKept / kRows;
  struct Row {  // of calls of one kind
    std::atomic<std::uint64_t> first{0}, word0{0}, word1{0};
  };
  struct Page {
    Row rows[kRows];
  };
  // The row that was begun `back` rows ago, from 1. False where it is being rewritten.
  bool row(std::uint32_t count, std::uint32_t back, std::uint32_t& first, Tag& kind) const;

  CallTimes times_;
  std::atomic<std::uint32_t> entered_{0}, completed_{0};
  std::atomic<std::uint32_t> row_count_{0};  // ever
  std::atomic<Page*> pages_[kPages] = {};
  std::unique_ptr<Page> owned_[kPages];
  const TickScale scale_;

  std::atomic<std::uint32_t> wait_version_{0};  // 0: it waits for nobody; odd: it is being written
  std::uint32_t last_version_ = 0;
  std::atomic<std::uint64_t> wait_[3] = {};
};

}  // namespace tutti::internal
