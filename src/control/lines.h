// The control connections of a rank after joining: sockets and timers around its Seat. Everything runs on the control
// thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/control.h"
#include "control/link.h"
#include "control/process_watch.h"
#include "control/seat.h"

namespace tutti::internal {

class Lines {
 public:
  // links: by rank, those of joining. `hear` gets the notices for this rank. The members outlive it.
  Lines(boost::asio::io_context& io, int rank, const std::vector<Member>& members, std::string key, const Pace& pace,
        std::vector<std::shared_ptr<Link>> links, std::function<void(Notice)> hear);

  // What this rank wants of the others: told to the seat by `ask`.
  template <class Ask>
  void ask(Ask&& ask) {
    ask(seat_);
    act();
  }
  const Seat& seat() const { return seat_; }

  void arrived(const std::shared_ptr<Link>& link);  // another rank has made a control connection
  void tick();
  // Says goodbye. done() once the others have heard it, or after a second.
  void leave(std::function<void()> done);

 private:
  void act();
  void carry(int rank, const std::shared_ptr<Link>& link, bool by_higher);
  void connect_to(int rank);
  bool is_patient_with(int rank) const;
  void connect_again(int rank);
  void not_reached(int rank, const std::string& why, Evidence evidence);
  void call();
  void follow_log();
  void set_alarm();
  void keep_leaving();
  void take_leave();
  bool has_other_processes() const;
  void end_leave();
  struct Peer {
    std::shared_ptr<Link> link;  // nullptr: never made, or over
    bool by_lower = false;       // the lower rank of the two has made it
    bool is_called = false;      // a connection is being made to it
    Clock::time_point called;    // since when
    bool is_summoned = false;    // by this hub, over the link
  };
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  bool is_open(int rank) const;

  boost::asio::io_context& io_;
  const int rank_;
  const std::vector<Member>& members_;
  const std::string key_;
  const Clock::duration answers_within_;
  std::vector<Peer> peers_;  // by rank
  const std::function<void(Notice)> hear_;
  Seat seat_;
  ProcessWatch watch_;
  int watched_for_ = 0;  // the hub when watch_ was told whom to watch
  boost::asio::steady_timer alarm_, parting_;
  bool acting_ = false;
  std::function<void()> left_;  // of leave()
  Clock::time_point leaves_by_;
};

}  // namespace tutti::internal
