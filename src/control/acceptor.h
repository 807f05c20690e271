// The listening side of the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "control/link.h"
#include "net/handshake.h"
#include "net/socket.h"

namespace tutti::internal {

// Takes connections in and hands over those that have shaken hands. Strangers cost nothing but a socket each for a
// moment. When too many are still shaking hands, one is dropped: of the address that has most of them, one that has
// said nothing yet where there is one, and of these the oldest. So the silent do not get in the way of those that
// speak, nor the callers from one address in the way of those from another.
//
// One descriptor is kept in reserve: where no other is left for a moment, callers are told so on that one.
class Acceptor {
 public:
  struct Handlers {
    std::function<void(const std::shared_ptr<Link>&)> on_link;              // its handshake says what it is for
    std::function<void(const std::string&)> on_stranger;                    // someone was turned away, and why
    std::function<void(const Handshake::Opening&, bool local)> on_no_room;  // a rank was, for want of descriptors
  };
  Acceptor(boost::asio::io_context& io, Clock::duration limit, std::size_t max_pending, Handlers handlers);

  // Behind a local socket only processes of our own user are let in.
  void open(Socket listener, const Handshake::AcceptPolicy& policy);
  void close();

 private:
  struct Listener {
    boost::asio::posix::stream_descriptor descriptor;
    boost::asio::steady_timer pause;
    Handshake::AcceptPolicy policy;
    bool local;
  };
  struct Pending {
    std::weak_ptr<Link> link;
    std::string from;  // its address
  };
  void wait_at(const std::shared_ptr<Listener>& listener);
  void wait_again_at(const std::shared_ptr<Listener>& listener);  // in a moment
  void accept_at(const std::shared_ptr<Listener>& listener);
  void no_descriptor_at(const std::shared_ptr<Listener>& listener, int error);
  void welcome(Socket socket, const Listener& listener);
  void turn_away(Socket socket, const std::shared_ptr<Listener>& listener);
  bool is_let_in(const Socket& socket, const Listener& listener);
  void forget_those_who_are_done();
  void drop_one(bool only_if_silent);

  boost::asio::io_context& io_;
  Clock::duration limit_;
  std::size_t max_pending_;
  Handlers handlers_;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::deque<Pending> pending_;  // oldest first
  Socket reserve_;
  // In between it was tried again and again.
  std::optional<Clock::time_point> without_descriptors_since_;
  Clock::time_point last_without_descriptors_;
};

}  // namespace tutti::internal
