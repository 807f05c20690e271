// What the simulation behind price() keeps of messages and ranks.
#pragma once

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <vector>

#include "schedule/claimed_messages.h"
#include "schedule/cost_model.h"
#include "schedule/schedule.h"

namespace tutti::internal::cost_state {

// The fragments in which a message comes through shared memory: each can be combined before the next is there.
inline constexpr double kPieceBytes = 64 << 10;

struct Message {
  std::size_t bytes = 0;
  const LinkCost* link = nullptr;
  bool received = false;                         // the receiver has paid for it
  std::optional<double> arrives, posted, taken;  // us
};

struct Channel {
  std::deque<Message> messages;
  std::vector<Message*> sent, posted;
  ClaimedMessages claimed;
  Message& at(std::size_t number) {
    while (messages.size() <= number) messages.emplace_back();
    return messages[number];
  }
};

struct Rank {
  std::size_t step = 0;
  double now = 0;                 // in its program
  double free = 0;                // its core: sends and receives go on while the program does
  double work = 0;                // of its core
  double switching = 0;           // what it costs its core that it had to wait
  double turned = 0;              // when its core, where ranks share it, last came back to it
  double sharing = 1;             // ranks a core
  const Step* reduced = nullptr;  // the reduce right behind which it stands, but for sends, and when that began
  double reduce_began = 0;
  std::vector<Message*> claimed;  // the messages of the reduce it stands at
  std::size_t bytes_sent = 0, bytes_received = 0, bytes_reduced = 0, bytes_between_hosts = 0;
  int messages_sent = 0;

  // Something that takes `us` of its core and cannot begin before `ready`.
  double occupy(double ready, double us) {
    free = std::max(free, ready) + us;
    work += us;
    return free;
  }
  // switch_us: from one rank to the next, where they share a core; else 0. Who shares one must give it away to see what
  // the others have done since it last came back: also for what would else have come while this rank was busy. It comes
  // back when all of them have looked for what they wait for.
  void wait_until(double time, double switch_us) {
    if (time <= (switch_us > 0 ? turned : std::max(now, free))) return;
    now = std::max(now, time);
    if (switch_us <= 0) return;
    turned = now = std::max(now, free) + switch_us * sharing;
    switching += switch_us;
  }
};

}  // namespace tutti::internal::cost_state
