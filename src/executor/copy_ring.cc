#include "executor/copy_ring.h"

#include <algorithm>
#include <utility>

namespace tutti::internal {
bool CopyRing::Left::is_read(std::span<const PeerLink> links, int& reader) const {
  for (std::size_t rank = 0; rank < sent.size(); ++rank) {
    if (links[rank].channel == nullptr || links[rank].channel->sent() >= sent[rank]) continue;
    reader = static_cast<int>(rank);
    return false;
  }
  return true;
}

void CopyRing::fit(std::size_t bytes, bool goes_ahead, const Allocate& allocate) {
  const std::size_t wanted = length_for(bytes, goes_ahead);
  if (memory_ != nullptr && memory_->bytes() >= wanted) return;
  if (!left_.empty()) outgrown_.push_back({memory_, left_.back()});
  left_.clear();
  memory_ = nullptr;
  memory_ = allocate(wanted);
  taken_ = {};
}

std::byte* CopyRing::take(std::size_t bytes, bool goes_ahead) {
  const std::size_t begin = taken_.end + bytes <= length_for(bytes, goes_ahead) ? taken_.end : 0;
  taken_.begin = begin;
  taken_.end = begin + bytes;
  return memory_->data() + begin;
}

bool CopyRing::is_read(std::span<const PeerLink> links, int& reader) {
  int of_outgrown = -1;
  std::erase_if(outgrown_, [&](const Outgrown& one) { return one.last.is_read(links, of_outgrown); });
  const auto last = std::find_if(left_.rbegin(), left_.rend(), [&](const Left& one) { return one.overlaps(taken_); });
  if (last == left_.rend()) return true;
  if (!last->is_read(links, reader)) return false;
  read_.splice(read_.end(), left_, left_.begin(), last.base());  // peers read in order
  return true;
}

void CopyRing::leave(std::span<const PeerLink> links) {
  if (read_.empty()) read_.emplace_back();
  Left& left = read_.back();
  left.begin = taken_.begin;
  left.end = taken_.end;
  left.sent.resize(links.size());
  for (std::size_t rank = 0; rank < links.size(); ++rank) left.sent[rank] = links[rank].sent;
  left_.splice(left_.end(), read_, std::prev(read_.end()));
}

void CopyRing::hand_to(std::span<const PeerLink> links) const {
  keep_until_read(memory_, links);
  for (const Outgrown& one : outgrown_) keep_until_read(one.memory, links);
}

}  // namespace tutti::internal
