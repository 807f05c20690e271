// A rank's part of the control plane after joining, as a state machine without I/O. While this rank is the hub, it has
// a Relay too. Three files implement it: seat.cc (what is heard and said), seat_hub.cc (which rank is the hub),
// seat_silence.cc (while that is silent).
//
// What the rank says to the hub and what the hub has not settled yet is said again to the next hub.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/call_histories.h"
#include "control/relay.h"
#include "control/roll_call.h"

namespace tutti::internal {

class Seat {
 public:
  Seat(int rank, std::vector<int> hosts, const Pace& pace, Clock::time_point now);

  // --- what happens. `from` has proven that it is that rank.
  void received(int from, const ControlMessage& message, Clock::time_point now);
  void connected(Clock::time_point now);            // there is a connection to hub()
  void disconnected() { is_enlisted_ = is_hub(); }  // another connection to hub() takes its place
  void reached(int rank, Clock::time_point now);    // this rank made a connection to another one, which lives
  void called(int rank);                            // there is one, on which it may have to say that it is the hub
  // A connection has ended, or the attempt to make one.
  void closed(int rank, const std::string& what, Evidence evidence, Clock::time_point now);
  void ended(int rank, Clock::time_point now);  // its process, as the kernel says
  void tick(Clock::time_point now);
  std::optional<Clock::time_point> due() const;  // when look() is to be called, if that is before the next tick
  void look(Clock::time_point now);

  // --- what this rank wants
  // For the hub: a poison, a farewell, a probe and the like.
  void request(ControlMessage message, Clock::time_point now);
  void say_goodbye(Clock::time_point now);
  CallHistories& histories() { return histories_; }

  // --- what is to be done
  std::vector<Notice> take_notices();
  std::vector<Outgoing> take_outgoing();  // over the connections to these ranks, if there are
  int hub() const { return hub_; }
  bool is_hub() const { return hub_ == rank_; }
  bool is_enlisted() const { return is_enlisted_; }  // with the hub, or this rank is it
  // Whether a connection to that rank is to be made. A member: to the hub; to all that may become the hub, once it is
  // doubted; and to the ranks that are asked for a sign of life. A hub: to the members that do not come.
  bool wants(int rank) const;
  const EventLog& log() const { return log_; }
  bool is_settled() const { return unsettled_.empty(); }  // the hub has answered all that this rank has said
  // Nothing more comes of this rank: its goodbye has been heard, or it was given up.
  bool is_over() const { return is_over_; }

 private:
  struct Doubt {
    std::string why;
    Evidence evidence;
  };

  void hold(int from, const ControlMessage& message);
  void heard_from_hub(const ControlMessage& message);
  void doubt(int rank, const Doubt& doubt);
  void deliver(const Notice& notice);
  void take_relayed();
  void doubt_hub(const std::string& why, Evidence evidence, Clock::time_point now);
  // Between the hub that this rank knows and itself: a later hub, to which all have come.
  bool speaks_as_hub(int from, const ControlMessage& message) const {
    const auto* const ping = std::get_if<Ping>(&message);
    return from > hub_ && from < rank_ && !log_.is_gone(from) && ping != nullptr && ping->is_open;
  }
  void return_to(int rank, Clock::time_point now);
  void step_back(int to, Clock::time_point now);
  bool is_sure_to_be_hub() const;
  void withdrawn(int from, int to, Clock::time_point now);
  void given_up_by_minority(int rank, Clock::time_point now);
  void follow(int rank, Clock::time_point now);
  void choose_hub(Clock::time_point now);
  void become_hub(Clock::time_point now);
  bool is_asked(int rank) const;
  void ask_for_signs_of_life(Clock::time_point now);
  void doubt_silent_candidates(Clock::time_point now);
  void notice_sleep(Clock::time_point now);
  void fence(int by, const std::string& why);
  void settle(const Notice& notice);
  void answer(const Probe& probe);
  bool is_of_one_host(int one, int other) const {
    return hosts_[static_cast<std::size_t>(one)] == hosts_[static_cast<std::size_t>(other)];
  }

  const int rank_;
  const std::vector<int> hosts_;
  const Pace pace_;
  EventLog log_;
  int hub_ = 0;
  bool is_enlisted_ = true;
  bool is_over_ = false;
  Clock::time_point heard_, last_tick_, last_look_;
  std::map<int, Doubt> doubts_;  // lower ranks that did not answer as the hub
  std::optional<Clock::time_point> without_hub_since_;
  RollCall roll_call_;
  // It slept for long then, and has not heard of a hub since: it may have been given up.
  std::optional<Clock::time_point> woke_;
  bool leaves_ = false;
  std::optional<int> returns_to_;  // that earlier hub, once hub() has forgotten the enlistment
  int spoken_ = 0;                 // the latest rank that has spoken as an open hub
  std::optional<Relay> relay_;     // while this rank is the hub
  Farewells farewells_;            // what a hub handed on when it left
  std::vector<ControlMessage> unsettled_;
  std::vector<std::pair<int, ControlMessage>> held_;  // said to this rank as a hub, which it is not yet
  CallHistories histories_;
  std::vector<Notice> notices_;
  std::vector<Outgoing> outgoing_;
};

}  // namespace tutti::internal
