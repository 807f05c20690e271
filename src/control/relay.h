// The control plane between joining and the end, as two sans-I/O state machines: the Relay is the hub's part, a
// ControlMember every rank's (rank 0 has both). Times are told to them, messages come out of them.
//
// When a rank counts as dead: at once, if its connection closes without a goodbye. Otherwise after `silence` (three
// times the connect timeout) without a message: every second the hub pings, and each member answers. The control thread
// answers, so a rank falls silent only if its process is stopped, or its machine is unreachable or overloaded for that
// long. A rank that was stopped itself does not blame the others: it starts to count again.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "control/farewells.h"
#include "control/message.h"

namespace tutti::internal {

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

 private:
  void depart(Notice::Kind kind, int rank, const std::string& message);
  void tell(int rank, ControlMessage message);  // if it is present
  void tell_others(int rank, const Notice& notice);

  Pace pace_;
  std::vector<bool> present_;
  std::vector<Clock::time_point> heard_;
  Clock::time_point last_tick_;
  Farewells farewells_;
  std::vector<Outgoing> outgoing_;
};

class ControlMember {
 public:
  ControlMember(int rank, int size, const Pace& pace, Clock::time_point now);

  void received(const ControlMessage& message, Clock::time_point now);
  void closed(const std::string& why);  // the connection to the hub
  void hub_is_gone();                   // in good order, or for whom this rank leaves: nothing more comes from it
  bool has_hub() const { return !hub_is_gone_; }
  void lost(int peer, const std::string& why);  // found out without the hub
  void tick(Clock::time_point now);             // not for rank 0, whose hub is itself

  void say_farewell(const Farewell& farewell);
  bool knows_answer(const Probe& probe);  // without the hub: then it is a notice

  void publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history);
  void unpublish(std::uint64_t communicator);

  std::vector<Notice> take_notices();           // each peer is lost or has left at most once
  std::vector<ControlMessage> take_outgoing();  // for the hub
  bool is_gone(int peer) const { return gone_[static_cast<std::size_t>(peer)]; }

 private:
  void answer(const Probe& probe);
  void lose_hub(const std::string& why);

  int rank_;
  Pace pace_;
  std::vector<bool> gone_;
  Clock::time_point heard_, last_tick_;
  std::map<std::uint64_t, std::shared_ptr<const CallHistory>> histories_;
  static constexpr std::size_t kKeptLeft = 256;
  std::deque<std::pair<std::uint64_t, std::shared_ptr<const CallHistory>>> left_;  // communicators, the last kKeptLeft
  bool hub_is_gone_ = false;
  Farewells farewells_;            // what the hub handed on when it left
  std::vector<Farewell> unheard_;  // said to the hub, and not answered yet
  std::vector<Notice> notices_;
  std::vector<ControlMessage> outgoing_;
};

}  // namespace tutti::internal
