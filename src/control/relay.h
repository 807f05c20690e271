// The hub's part of the control plane after joining, as a state machine without I/O: what it is told (relay.cc), and
// whom it takes for lost (relay_verdict.cc). Times are told to it, messages come out of it. The hub decides what has
// become of ranks and communicators; its decisions are the events of the log.
//
// Who decides. The lowest rank that is there is the hub. A hub that leaves hands over to the next rank. If it is lost,
// every rank turns to the next one by itself (seat.h), and brings the events that it knows. All have heard the events
// in one order, so each knows a beginning of what the one knows that has heard most. The new hub takes that longest
// log, completes the others, and goes on. It decides nothing before all ranks have come that it does not take for lost.
// (View changes with a log, as in Viewstamped Replication. The hub's rank is the number of the view: it only grows.)
//
// When a rank is lost.
// - Confirmed, at once: the kernel of its own host says that its process has ended; its connection closes, or it is
//   silent, and it is on the hub's own host. No network can be at fault then. (Silence is no proof for a hub that
//   slept for long before it became the hub: the others may have given it up.)
// - Suspected: its connection closes and it is on another host, or no word has come from it for Pace::silence (every
//   tick the hub pings, and the control thread of a member answers). The hub waits a moment for further suspects, so
//   that it judges all that is behind a broken network together. Then the ranks that are left must be a majority of
//   those that may live, or half of them and the lowest of these. If they are a minority, the others may be the
//   majority and have given up this side. So a verdict of a minority does not bind the others: if they hear of it, they
//   go on without this side, if they can. And where it rests on silence, the error is `partitioned`, not `peer_lost`.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/event_log.h"
#include "control/farewells.h"
#include "control/message.h"
#include "control/votes.h"

namespace tutti::internal {

using Clock = std::chrono::steady_clock;

struct Pace {
  Clock::duration tick;     // between two calls of tick(), as far as the machine allows
  Clock::duration silence;  // after which a rank counts as lost
  Clock::duration uneasy() const { return silence / 2 - tick; }  // others are asked once the hub is silent for so long
  static Pace of(std::chrono::milliseconds heartbeat_timeout);
};

// How long this process slept (stopped, swapped out, suspended) since it last looked, but for one tick; 0 if it did
// not. That time does not count against the others.
Clock::duration slept_between(const Pace& pace, Clock::time_point last_look, Clock::time_point now);

// Why a rank is lost, called "it": its number differs between communicators.
std::string died(const std::string& why);
std::string died_by_kernel();  // as that of its host says
std::string silent_for(Clock::duration silence);

// How it is known that a rank is lost.
enum class Evidence : std::uint8_t {
  kernel,   // the kernel of its host says that its process has ended
  closing,  // its connection was closed, or cannot be made
  gave_up,  // it has given up the ranks here itself, and is on a side that is no majority
  silence,
};

// What a rank hears that was given up.
Notice expulsion(int by, const EventLog::Loss& loss);

struct Outgoing {
  int rank;
  ControlMessage message;
};

class Relay {
 public:
  // `hosts`: of each rank a number that ranks of one host share. `heard`: when this rank has heard of each, or since
  // when it asks for a sign of life in vain; they have to enlist. Empty: it is the first hub, and all are its members.
  // may_be_given_up: this rank slept for long. Then the silence of others proves nothing.
  Relay(int rank, std::vector<int> hosts, EventLog& log, Farewells farewells, const Pace& pace, Clock::time_point now,
        const std::vector<Clock::time_point>& heard, bool may_be_given_up);

  void received(int from, const ControlMessage& message, Clock::time_point now);
  // Takes what was said to this rank before it was the hub, and by whom. Decides nothing meanwhile.
  void replay(const std::vector<std::pair<int, ControlMessage>>& said, Clock::time_point now);
  void lose(int rank, const std::string& why, Evidence evidence, Clock::time_point now);
  void tick(Clock::time_point now);
  void notice_sleep(Clock::time_point now);  // tick() does; whoever makes it judge otherwise calls this before
  void judge(Clock::time_point now);
  // When it is time to judge, if that is before the next tick.
  std::optional<Clock::time_point> due() const;
  void leave();  // the hub's own goodbye

  std::vector<Outgoing> take_outgoing();  // some may be to the hub's own rank
  // What was said to it before all had come, and by whom.
  std::vector<std::pair<int, ControlMessage>> take_early() { return std::exchange(early_, {}); }
  // While not all have enlisted: whether that rank is to be called, as it has not come by itself. Not again once that
  // has failed.
  bool misses(int rank) const {
    const auto suspicion = suspicions_.find(rank);
    return is_late_ && rank > rank_ && !log_.is_gone(rank) && !members_[static_cast<std::size_t>(rank)].enlisted &&
           (suspicion == suspicions_.end() || suspicion->second.evidence == Evidence::silence);
  }
  bool is_open() const { return is_open_; }
  // It may have decided something, or have heard of an event that earlier hubs do not know.
  bool has_begun() const { return is_open_ || log_.size() > known_at_first_; }
  void forget(int rank);                             // its enlistment, and what it has said since
  std::vector<int> enlisted() const;                 // the others that have
  bool is_deserted() const { return is_deserted_; }  // a majority has turned to a later hub

 private:
  struct Suspicion {
    std::string why;
    Evidence evidence;
    Clock::time_point until;  // then it is judged
    bool has_slept = false;   // this process has meanwhile
  };
  struct Member {
    Clock::time_point heard;
    bool enlisted;
    bool confirmed;        // since this rank is the hub: an enlistment that was said before may be an old one
    std::uint32_t events;  // that it knows
  };

  void enlist(int rank, std::uint32_t events);
  void open_if_complete();
  void close_votes();
  std::uint32_t known_to_all() const;
  void survey(int from, const Survey& survey);
  void deserted(int by);
  void serve(int from, const ControlMessage& message);
  bool may_be_more(Clock::time_point now) const;
  void judge_suspects(Clock::time_point now);
  // With this hub, as far as it knows.
  bool is_here(int rank) const { return !suspicions_.contains(rank) && !deserters_.contains(rank); }
  void log(Notice event);
  void expel(int rank);
  void tell(int rank, ControlMessage message);  // if it is present
  Member& member(int rank) { return members_[static_cast<std::size_t>(rank)]; }
  // No network can be at fault on the hub's own host.
  bool is_confirmed(int rank, Evidence evidence) const {
    return evidence == Evidence::kernel ||
           (evidence != Evidence::gave_up && (evidence != Evidence::silence || !may_be_given_up_) &&
            hosts_[static_cast<std::size_t>(rank)] == hosts_[static_cast<std::size_t>(rank_)]);
  }

  const int rank_;
  const std::vector<int> hosts_;
  EventLog& log_;
  const std::uint32_t known_at_first_;
  bool is_replaying_ = false;
  Farewells farewells_;
  std::set<int> deserters_;
  bool is_deserted_ = false;
  const Pace pace_;
  bool may_be_given_up_;
  Clock::time_point last_look_;
  Clock::time_point begun_;
  bool is_open_;                 // all members have enlisted that are not suspected
  bool is_late_ = false;         // they should have by now
  std::uint32_t opened_at_ = 0;  // how many events there were then
  std::vector<Member> members_;
  std::map<int, Suspicion> suspicions_;
  Votes votes_;
  std::map<std::uint64_t, std::pair<std::uint32_t, int>> surveys_;  // by communicator: the last call, and who asked
  std::vector<std::pair<int, ControlMessage>> early_;               // what members said before it was open
  std::vector<Outgoing> outgoing_;
};

}  // namespace tutti::internal
