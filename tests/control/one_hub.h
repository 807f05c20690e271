// A hub alone with what it says.
#pragma once

#include <vector>

#include "control/relay.h"

namespace tutti::internal::testing_relay {

using std::chrono::milliseconds;
using Kind = Notice::Kind;

inline const Pace kPace{milliseconds(1000), milliseconds(15'000)};
inline const Clock::time_point kStart{};

inline Clock::time_point at(int ms) { return kStart + milliseconds(ms); }

// What a later hub has heard of so many ranks until it starts.
inline std::vector<Clock::time_point> until_start(int ranks) {
  return std::vector<Clock::time_point>(static_cast<std::size_t>(ranks), kStart);
}

// The hub of so many ranks, each on a host of its own unless all are on one.
struct Hub {
  explicit Hub(int ranks, bool one_host = false)
      : log(ranks), relay(0, hosts(ranks, one_host), log, Farewells(), kPace, kStart, {}, false) {}
  static std::vector<int> hosts(int ranks, bool one_host) {
    std::vector<int> all(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) all[static_cast<std::size_t>(rank)] = one_host ? 0 : rank;
    return all;
  }
  EventLog log;
  Relay relay;
};

// The notices about `peer` of kind `kind` among what is to be sent, as the list of receivers.
inline std::vector<int> told(Relay& relay, Kind kind, int peer) {
  std::vector<int> ranks;
  for (const auto& out : relay.take_outgoing())
    if (const auto* notice = std::get_if<Notice>(&out.message); notice && notice->kind == kind && notice->peer == peer)
      ranks.push_back(out.rank);
  return ranks;
}

}  // namespace tutti::internal::testing_relay
