// The control plane between joining and the end, as two sans-I/O state machines: the Relay is the hub's part, a Seat
// every rank's (rank 0 has both). Times are told to them, messages come out of them.
//
// Who is gone: a closed connection without a goodbye is a death, at once. Silence takes longer: every second the hub
// pings and a seat answers; nothing heard for `silence` (three times the connect timeout) is a death too. It is the
// control thread that answers, so only a process that is stopped, or a machine that is unreachable or out of breath for
// that long, falls silent. A rank that was itself asleep does not blame the others: it starts counting afresh.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/control_message.h"

namespace tutti::runtime {

using Clock = std::chrono::steady_clock;

struct Pace {
  Clock::duration tick;     // between two calls of tick(), as far as the machine allows
  Clock::duration silence;  // after which a rank counts as lost
  static Pace of(std::chrono::milliseconds connect_timeout);
};

class Relay {
 public:
  struct Outgoing {
    int rank;
    ControlMessage message;
  };

  Relay(int size, const Pace& pace, Clock::time_point now);

  void received(int from, const ControlMessage& message, Clock::time_point now);
  void closed(int rank, const std::string& why);
  void tick(Clock::time_point now);

  std::vector<Outgoing> take_outgoing();
  bool is_present(int rank) const { return present_[static_cast<std::size_t>(rank)]; }  // else close its connection
  bool is_empty() const;                                                                // everyone but rank 0 is gone

 private:
  void depart(Notice::Kind kind, int rank, const std::string& message);
  void tell(int rank, ControlMessage message);  // if it is present
  void tell_others(int rank, const Notice& notice);

  Pace pace_;
  std::vector<bool> present_;
  std::vector<Clock::time_point> heard_;
  Clock::time_point last_tick_;
  std::vector<Outgoing> outgoing_;
};

class Seat {
 public:
  Seat(int rank, int size, const Pace& pace, Clock::time_point now);

  void received(const ControlMessage& message, Clock::time_point now);
  void closed(const std::string& why);  // the connection to the hub
  void tick(Clock::time_point now);     // not for rank 0, whose hub is itself

  void publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history);
  void unpublish(std::uint64_t communicator) { histories_.erase(communicator); }

  std::vector<Notice> take_notices();           // each peer is lost or has left at most once
  std::vector<ControlMessage> take_outgoing();  // for the hub
  bool is_gone(int peer) const { return gone_[static_cast<std::size_t>(peer)]; }

 private:
  void answer(const Probe& probe);

  int rank_;
  Pace pace_;
  std::vector<bool> gone_;
  Clock::time_point heard_, last_tick_;
  std::map<std::uint64_t, std::shared_ptr<const CallHistory>> histories_;
  std::vector<Notice> notices_;
  std::vector<ControlMessage> outgoing_;
};

}  // namespace tutti::runtime
