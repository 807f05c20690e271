// A ring of the last rows of calls: one writer, any readers. A row is rewritten in the order {first = 0, words, first},
// each store a release; a reader that sees the same `first` before and after an acquiring read of the words has seen
// them whole. A row that is rewritten while a reader looks for an older one begins behind the call that the reader
// looks for.
#include "control/control.h"
#include "types/call.h"

namespace tutti::internal {
namespace {

// Sequences wrap around.
bool is_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

void CallHistory::begins(std::uint32_t sequence, const Tag& kind) {
  const std::uint32_t count = row_count_.load(std::memory_order_relaxed);
  Row& row = rows_[count % kKept];
  row.first.store(0, std::memory_order_relaxed);
  row.word0.store(kind.word[0], std::memory_order_release);
  row.word1.store(kind.word[1], std::memory_order_release);
  row.first.store(sequence, std::memory_order_release);
  row_count_.store(count + 1, std::memory_order_release);
}

bool CallHistory::at(std::uint32_t sequence, Tag& tag) const {
  if (sequence == 0 || is_before(entered_.load(std::memory_order_acquire), sequence)) return false;
  const std::uint32_t count = row_count_.load(std::memory_order_acquire);
  for (std::uint32_t i = 1; i <= kKept && i <= count; ++i) {
    const Row& row = rows_[(count - i) % kKept];
    const std::uint64_t first = row.first.load(std::memory_order_acquire);
    const Tag kind{{row.word0.load(std::memory_order_acquire), row.word1.load(std::memory_order_acquire)}};
    if (first == 0 || row.first.load(std::memory_order_relaxed) != first) return false;
    if (is_before(sequence, static_cast<std::uint32_t>(first))) continue;
    tag = Call::numbered(kind, sequence);
    return true;
  }
  return false;
}

bool CallHistory::is_ahead_of(std::uint32_t sequence) const {
  return is_before(sequence, entered_.load(std::memory_order_acquire));
}

Tag CallHistory::last_completed() const {
  Tag tag;
  at(completed_.load(std::memory_order_acquire), tag);
  return tag;
}

}  // namespace tutti::internal
