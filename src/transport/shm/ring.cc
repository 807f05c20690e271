#include "transport/shm/ring.h"

#include <algorithm>
#include <utility>

namespace tutti::internal::shm {

bool Ring::find(std::size_t bytes, const Unread& lines, std::size_t used, bool is_packed, Space& room) {
  for (; !spare_.empty(); spare_.pop()) {
    room = spare_.front();
    if (room.bytes() >= bytes) return true;
  }
  if (is_packed) head_ = gap_end_ = 0;
  const auto length = static_cast<std::uint32_t>(space_of(bytes));
  const auto end = static_cast<std::uint32_t>(used);
  if (head_ + length > std::min(gap_end_, end) && !next_gap(length, lines, end)) return false;
  room = {head_, head_ + length};
  return true;
}

void Ring::take(const Space& room, std::uint32_t line) {
  announced_[line % kLines] = {line, room};
  if (!spare_.empty() && spare_.front().begin == room.begin) {
    spare_.pop();
  } else {
    head_ = room.end;
  }
}

void Ring::lend(std::uint32_t line) {
  if (lent_.size() == kLines) return;  // a peer has no more lines
  Announced& announced = announced_[line % kLines];
  lent_.push(announced.line == line ? std::exchange(announced.space, {}) : Space{});
}

template <class Visit>
void Ring::visit_taken(const Unread& lines, const Visit& visit) const {
  for (std::uint32_t line = lines.acked; line != lines.written; ++line) {
    const Announced& announced = announced_[line % kLines];
    if (announced.line == line && announced.space.bytes() > 0) visit(announced.space);
  }
  for (std::size_t i = 0; i < lent_.size(); ++i) visit(lent_[i]);
}

// Moves on to the next gap of at least `bytes`, once around. Requires that nothing is spare.
bool Ring::next_gap(std::uint32_t bytes, const Unread& lines, std::uint32_t used) {
  std::uint32_t at = head_;
  for (bool is_around = false;;) {
    if (at > used - bytes) {
      if (std::exchange(is_around, true)) return false;
      at = 0;
    }
    const std::uint32_t tried = at;
    visit_taken(lines, [&](const Space& taken) {
      if (taken.begin < at + bytes && at < taken.end) at = taken.end;
    });
    if (at == tried) break;
  }
  head_ = at;
  gap_end_ = static_cast<std::uint32_t>(bytes_.one_way);
  visit_taken(lines, [&](const Space& taken) {
    if (taken.begin >= at && taken.bytes() > 0) gap_end_ = std::min(gap_end_, taken.begin);
  });
  return true;
}

}  // namespace tutti::internal::shm
