// How a rank looks for a message of any peer.
#include <emmintrin.h>

#include "runtime/group.h"

namespace tutti::internal {

// Whether a message has come to this lane that no receive is waiting for. Under the engine's lock.
bool Group::has_message() {
  if (is_busy()) return false;
  const int peer = 1 - rank();
  PeerLink& link = links_[peer];
  if (link.channel == nullptr) link.channel = job_->open(id_, members_.job_rank_of(peer));
  Tag tag;
  return link.channel->unclaimed(tag);
}

// The look begins behind the rank that was found last, so every rank gets its turn. Under the engine's lock.
std::optional<int> Group::find_sender() const {
  for (int i = 1; i <= size(); ++i)
    if (const int peer = (last_sender_ + i) % size(); peer != rank() && known_lane_from(peer)->has_message())
      return peer;
  return std::nullopt;
}

std::optional<int> Group::probe(BackoffPolicy::Clock::time_point until) {
  for (int peer = 0; peer < size(); ++peer)
    if (peer != rank()) lane_from(peer);
  Engine& engine = job_->engine();
  Engine::Lock lock(engine);
  const FloatEnvironment environment;
  BackoffPolicy backoff(engine.crowding().is_crowded(), engine.crowding().no_yield_before());
  while (true) {
    engine.advance_all();
    if (!failure_->is_well()) refuse();
    if (const auto sender = find_sender()) {
      last_sender_ = *sender;
      return sender;
    }
    if (until == BackoffPolicy::Clock::time_point{}) return std::nullopt;
    bool looked;
    const Pause pause = backoff.next(looked);
    if (looked) {
      watch(backoff.now());
      for (const auto& [way, lane] : lanes_) lane->watch(backoff.now());  // what was started there may time out
      engine.watch_driven(backoff.now());
      engine.watch_processor(backoff.look());
      backoff.set_crowded(engine.crowding().is_crowded(), engine.crowding().no_yield_before());
      lock.yield();
      if (backoff.now() >= until) return std::nullopt;
    }
    switch (pause) {
      case Pause::spin: _mm_pause(); break;
      case Pause::yield: engine.yield(); break;
      case Pause::sleep:
        engine.sleep(
            lock, [&] { return !failure_->is_well() || find_sender().has_value(); }, until - backoff.now());
        break;
    }
  }
}

}  // namespace tutti::internal
