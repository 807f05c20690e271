#include "control/call_histories.h"

#include <algorithm>

namespace tutti::internal {

void CallHistories::unpublish(std::uint64_t communicator) {
  const auto found = histories_.find(communicator);
  if (found == histories_.end()) return;
  left_.emplace_front(*found);
  if (left_.size() > kKeptLeft) left_.pop_back();
  histories_.erase(found);
}

const CallHistories::Entry* CallHistories::find_left(std::uint64_t communicator) const {
  const auto found = std::ranges::find(left_, communicator, &Entry::first);
  return found == left_.end() ? nullptr : &*found;
}

Answer CallHistories::answer(const Probe& probe) const {
  Answer reply;
  reply.to = probe.from;
  reply.notice.kind = Notice::Kind::answer;
  reply.notice.communicator = probe.communicator;
  reply.notice.sequence = probe.sequence;
  const Entry* const left = find_left(probe.communicator);
  const auto found = histories_.find(probe.communicator);
  const bool was_made = left != nullptr || found != histories_.end();
  reply.notice.has_left = left != nullptr || (!was_made && find_left(probe.whole) != nullptr);
  if (was_made) {
    const CallHistory& history = left != nullptr ? *left->second : *found->second;
    reply.notice.entered = history.at(probe.sequence, reply.notice.call) || history.is_ahead_of(probe.sequence);
    reply.notice.last = history.last_completed();
  }
  return reply;
}

}  // namespace tutti::internal
