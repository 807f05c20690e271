// One connection on the control thread: it is made, shakes hands, and then either carries control messages or hands its
// socket over. All members belong to the control thread.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/message.h"
#include "net/handshake.h"
#include "net/socket.h"

namespace tutti::internal {

using Clock = std::chrono::steady_clock;

// Lives until it is closed: its pending waits own it.
class Link : public std::enable_shared_from_this<Link> {
 public:
  // Both may close the link. None is called after close() or release().
  std::function<void()> on_authenticated;
  std::function<void(const ControlMessage&)> on_message;
  std::function<void(const std::string& why)> on_closed;  // once: the other end, the deadline or an error ended it

  Link(boost::asio::io_context& io, Socket socket, Handshake handshake);

  // The connecting must be over within connect_limit, and the handshake within answer_limit of that. An end that
  // connects waits for the verdict for another answer_limit after it has said its proof.
  void start(bool still_connecting, Clock::duration connect_limit, Clock::duration answer_limit);

  // After on_authenticated, one of:
  void carry_messages(std::size_t limit_bytes);
  int release();  // the socket, non-blocking, everything of the handshake written and nothing after it read

  void send(const ControlMessage& message);
  void expect_message_within(Clock::duration limit);  // or it ends
  // Writes what is still to be written, tells the other end that nothing follows, and closes when it does, or after
  // `limit`.
  void finish(Clock::duration limit);
  void close();

  const Handshake& handshake() const { return handshake_; }
  bool is_open() const { return descriptor_.is_open(); }
  // Who was called has said nothing in time, nor refused: its host may be out of reach.
  bool is_unanswered() const { return unanswered_; }
  bool has_connected() const { return connected_; }
  bool is_authenticated() const { return handshake_.done(); }
  Endpoint own_end() const { return internal::own_end(fd_); }
  Endpoint other_end() const { return internal::other_end(fd_); }

 private:
  void give_up_after(Clock::duration limit);
  void await_answer() { give_up_after(answer_limit_); }
  void wait_until_readable();
  void wait_until_writable();
  void read();
  void write();
  void took(std::span<const std::byte> bytes);
  void shake(std::span<const std::byte> bytes);
  void end(const std::string& why);

  int fd_;  // valid while the descriptor is open
  boost::asio::posix::stream_descriptor descriptor_;
  boost::asio::steady_timer deadline_;
  Clock::duration answer_limit_{};
  Handshake handshake_;
  FrameReader frames_{0};
  std::vector<std::byte> out_;
  bool unanswered_ = false;
  bool connected_ = false;
  bool carrying_ = false;
  bool has_message_ = false;
  bool finishing_ = false;
  bool waiting_to_write_ = false;
};

}  // namespace tutti::internal
