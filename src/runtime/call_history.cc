// A ring of the last calls: one writer, any readers. A slot is rewritten in the order {sequence = 0, words, sequence},
// each store a release; a reader that sees the same sequence before and after an acquiring read of the words has seen
// them whole.
#include "runtime/control.h"

namespace tutti::runtime {
namespace {

// Sequences wrap around.
bool is_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

bool CallHistory::at(std::uint32_t sequence, Tag& tag) const {
  const Slot& slot = slots_[sequence % kKept];
  if (sequence == 0 || slot.sequence.load(std::memory_order_acquire) != sequence) return false;
  const Tag seen{{slot.word0.load(std::memory_order_acquire), slot.word1.load(std::memory_order_acquire)}};
  if (slot.sequence.load(std::memory_order_relaxed) != sequence) return false;
  tag = seen;
  return true;
}

bool CallHistory::is_ahead_of(std::uint32_t sequence) const {
  return is_before(sequence, entered_.load(std::memory_order_acquire));
}

Tag CallHistory::last_completed() const {
  Tag tag;
  at(completed_.load(std::memory_order_acquire), tag);
  return tag;
}

}  // namespace tutti::runtime
