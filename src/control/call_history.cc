// A ring of the last rows of calls: one writer, any readers. A row is rewritten in the order {first = 0, words, first},
// each store a release; a reader that sees the same `first` before and after an acquiring read of the words has seen
// them whole. A row that is rewritten while a reader looks for an older one begins behind the call that the reader
// looks for.
#include "control/call_history.h"

#include <algorithm>

#include "types/call.h"

namespace tutti::internal {
namespace {

// Sequences wrap around.
bool is_before(std::uint32_t a, std::uint32_t b) { return static_cast<std::int32_t>(a - b) < 0; }

}  // namespace

void CallHistory::begins(std::uint32_t sequence, const Tag& kind) {
  const std::uint32_t count = row_count_.load(std::memory_order_relaxed);
  const std::uint32_t page = count % kKept / kRows;
  if (owned_[page] == nullptr) {
    owned_[page] = std::make_unique<Page>();
    pages_[page].store(owned_[page].get(), std::memory_order_release);
  }
  Row& row = owned_[page]->rows[count % kRows];
  row.first.store(0, std::memory_order_relaxed);
  row.word0.store(kind.word[0], std::memory_order_release);
  row.word1.store(kind.word[1], std::memory_order_release);
  row.first.store(sequence, std::memory_order_release);
  row_count_.store(count + 1, std::memory_order_release);
}

bool CallHistory::row(std::uint32_t count, std::uint32_t back, std::uint32_t& first, Tag& kind) const {
  if (back > kKept || back > count) return false;
  const std::uint32_t at = (count - back) % kKept;
  const Row& row = pages_[at / kRows].load(std::memory_order_acquire)->rows[at % kRows];
  const std::uint64_t begun = row.first.load(std::memory_order_acquire);
  kind = {{row.word0.load(std::memory_order_acquire), row.word1.load(std::memory_order_acquire)}};
  first = static_cast<std::uint32_t>(begun);
  return begun != 0 && row.first.load(std::memory_order_relaxed) == begun;
}

bool CallHistory::at(std::uint32_t sequence, Tag& tag) const {
  if (sequence == 0 || is_before(entered(), sequence)) return false;
  const std::uint32_t count = row_count_.load(std::memory_order_acquire);
  std::uint32_t first;
  Tag kind;
  for (std::uint32_t back = 1; row(count, back, first, kind); ++back) {
    if (is_before(sequence, first)) continue;
    tag = Call::numbered(kind, sequence);
    return true;
  }
  return false;
}

bool CallHistory::is_ahead_of(std::uint32_t sequence) const { return is_before(sequence, entered()); }

Tag CallHistory::last_completed() const {
  Tag tag;
  at(completed(), tag);
  return tag;
}

std::vector<RecordedCall> CallHistory::last(std::uint32_t most) const {
  std::vector<RecordedCall> calls;
  const std::uint32_t done = completed(), newest = entered();
  const CallTimes::View times = times_.view();
  const std::uint32_t count = row_count_.load(std::memory_order_acquire);
  std::uint32_t first = 0, back = 0;
  Tag kind;
  bool is_known = row(count, ++back, first, kind);
  for (std::uint32_t i = 0; i < std::min(most, times.held()); ++i) {
    const std::uint32_t sequence = newest - i;
    while (is_known && is_before(sequence, first)) is_known = row(count, ++back, first, kind);
    if (!is_known || sequence == 0) break;
    RecordedCall call{Call::numbered(kind, sequence), times.at(sequence)};
    // The time is written last, and the place may have that of an earlier call.
    if (is_before(done, sequence) || call.ticks.completed < call.ticks.entered) call.ticks.completed = 0;
    calls.push_back(call);
  }
  // The writer may have come to the places of the oldest meanwhile: it may be at the call behind the last entered one.
  // at() reads with acquire, so this is read behind the times.
  const std::uint32_t next = entered_.load(std::memory_order_relaxed) + 1;
  while (!calls.empty() && next - static_cast<std::uint32_t>(calls.back().tag.word[0] >> 32) >= times.held())
    calls.pop_back();
  std::ranges::reverse(calls);
  return calls;
}

std::vector<CallRow> CallHistory::last_rows(std::uint32_t most) const {
  std::vector<CallRow> rows;
  const std::uint32_t count = row_count_.load(std::memory_order_acquire);
  CallRow one;
  while (rows.size() < most && row(count, static_cast<std::uint32_t>(rows.size()) + 1, one.first, one.kind))
    rows.push_back(one);
  std::ranges::reverse(rows);
  return rows;
}

void CallHistory::waits(const CallWait& wait) {
  wait_version_.store(last_version_ | 1, std::memory_order_relaxed);
  // Whoever reads one of the words below has the odd version, too.
  const auto half = [](auto value) { return std::uint64_t{static_cast<std::uint32_t>(value)}; };
  wait_[0].store(half(wait.sequence) << 32 | half(wait.peer), std::memory_order_release);
  wait_[1].store(half(wait.step) << 32 | half(wait.takes), std::memory_order_release);
  wait_[2].store(static_cast<std::uint64_t>(wait.since_ns), std::memory_order_release);
  last_version_ += 2;
  wait_version_.store(last_version_, std::memory_order_release);
}

// Nothing where the call has gone on.
std::optional<CallWait> CallHistory::waiting() const {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::uint32_t version = wait_version_.load(std::memory_order_acquire);
    if (version == 0) return std::nullopt;
    const std::uint64_t who = wait_[0].load(std::memory_order_acquire), how = wait_[1].load(std::memory_order_acquire);
    const std::uint64_t since = wait_[2].load(std::memory_order_acquire);
    if (version % 2 != 0 || wait_version_.load(std::memory_order_relaxed) != version) continue;
    const auto sequence = static_cast<std::uint32_t>(who >> 32);
    if (sequence != entered() || sequence == completed()) return std::nullopt;
    return CallWait{sequence, static_cast<std::int32_t>(who), static_cast<std::int32_t>(how >> 32),
                    static_cast<std::uint32_t>(how), static_cast<std::int64_t>(since)};
  }
  return std::nullopt;
}

}  // namespace tutti::internal
