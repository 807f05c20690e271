// What the ranks of one process share: for each direction of each channel, what is lent at either end.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <tuple>

#include "transport/claims.h"
#include "transport/sleeper.h"
#include "transport/transport.h"
#include "transport/turn.h"

namespace tutti::internal::inproc {

// One rank, as the others see it.
struct Resident {
  Sleeper& sleeper;
  bool asleep = false;
  Turn turn{};
};

// A message lent by its sender.
struct Lent {
  Tag tag;
  const std::byte* data;
  std::size_t bytes;
};

// One direction of one channel. The front of `lent` is message claims.done(): they meet in order.
struct Direction {
  std::deque<Lent> lent;
  Claims claims;
  Resident* sender = nullptr;  // null before its channel is made and after it has gone
  Resident* receiver = nullptr;
  bool sender_gone = false, receiver_gone = false;  // or has withdrawn
};

// Shared by the transports of all ranks of one process; make one and give it to each. Thread-safe.
// Communicators must have different numbers, also those that have no rank in common.
class Hub {
 private:
  friend class Transport;
  friend class Channel;
  using Key = std::tuple<std::uint64_t, int, int>;  // communicator, from, to

  std::shared_ptr<Direction> direction(const Key& key);  // requires mutex_
  void drop_if_left(const Key& key);                     // once both ends have gone; requires mutex_

  std::mutex mutex_;  // guards everything in here, directions and residents included
  std::map<Key, std::shared_ptr<Direction>> directions_;
};

}  // namespace tutti::internal::inproc
