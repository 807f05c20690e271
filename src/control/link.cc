#include "control/link.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace tutti::internal {

namespace asio = boost::asio;
using boost::system::error_code;

Link::Link(asio::io_context& io, Socket socket, Handshake handshake)
    : fd_(socket.release()), descriptor_(io, fd_), deadline_(io), handshake_(std::move(handshake)) {}

void Link::start(bool still_connecting, Clock::duration connect_limit, Clock::duration answer_limit) {
  answer_limit_ = answer_limit;
  give_up_after(still_connecting ? connect_limit : answer_limit);
  connected_ = !still_connecting;
  if (connected_) return shake({});
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_write, [self = shared_from_this()](error_code ec) {
    if (ec || !self->is_open()) return;
    if (const int error = error_of(self->fd_)) {
      self->unanswered_ = error != ECONNREFUSED;  // there is no way to its host, say
      return self->end(std::generic_category().message(error));
    }
    self->connected_ = true;
    self->await_answer();
    self->shake({});
  });
}

void Link::give_up_after(Clock::duration limit) {
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this()](error_code ec) {
    // It may have been given more time after it ran out, before this was called.
    const bool over = !ec && self->deadline_.expiry() <= Clock::now();
    if (!over || self->is_authenticated()) return;
    self->unanswered_ = true;
    self->end("it did not answer in time");
  });
}

void Link::expect_message_within(Clock::duration limit) {
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec && !self->has_message_ && !self->finishing_) self->end("it said nothing");
  });
}

void Link::carry_messages(std::size_t limit_bytes) {
  frames_ = FrameReader(limit_bytes);
  carrying_ = true;
}

int Link::release() {
  deadline_.cancel();
  return descriptor_.is_open() ? descriptor_.release() : -1;
}

void Link::send(const ControlMessage& message) {
  if (!is_open() || finishing_) return;
  const auto bytes = encode(message);
  out_.insert(out_.end(), bytes.begin(), bytes.end());
  write();
}

void Link::finish(Clock::duration limit) {
  if (!is_open() || finishing_) return;
  finishing_ = true;
  deadline_.expires_after(limit);
  deadline_.async_wait([self = shared_from_this()](error_code ec) {
    if (!ec) self->end("it did not close in time");
  });
  write();
}

void Link::close() {
  deadline_.cancel();
  error_code ignored;
  descriptor_.close(ignored);
}

void Link::end(const std::string& why) {
  if (!is_open()) return;
  close();
  if (on_closed) on_closed(why);
}

void Link::wait_until_readable() {
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_read, [self = shared_from_this()](error_code ec) {
    if (!ec && self->is_open()) self->read();
  });
}

void Link::wait_until_writable() {
  if (std::exchange(waiting_to_write_, true)) return;
  descriptor_.async_wait(asio::posix::stream_descriptor::wait_write, [self = shared_from_this()](error_code ec) {
    self->waiting_to_write_ = false;
    if (!ec && self->is_open()) self->write();
  });
}

// One piece a turn, so that no connection keeps the thread from the others.
void Link::read() {
  std::array<std::byte, 16384> piece;
  const std::size_t wanted = carrying_ ? piece.size() : std::min(handshake_.wanted(), piece.size());
  const ssize_t bytes = ::recv(fd_, piece.data(), wanted, 0);
  if (bytes == 0) return end("the connection was closed");
  if (bytes < 0 && errno != EAGAIN && errno != EINTR) return end(std::generic_category().message(errno));
  if (bytes > 0) took(std::span(piece).first(static_cast<std::size_t>(bytes)));
  if (is_open() && (carrying_ || handshake_.wanted() > 0)) wait_until_readable();
}

// A failure to write is left for read() to find: what the other end said before it went must still be heard.
void Link::write() {
  std::size_t written = 0;
  while (written < out_.size()) {
    const ssize_t bytes = ::send(fd_, out_.data() + written, out_.size() - written, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0 && errno != EAGAIN) written = out_.size();
    if (bytes < 0) break;
    written += static_cast<std::size_t>(bytes);
  }
  out_.erase(out_.begin(), out_.begin() + static_cast<std::ptrdiff_t>(written));
  if (!out_.empty()) return wait_until_writable();
  if (finishing_) ::shutdown(fd_, SHUT_WR);
}

void Link::took(std::span<const std::byte> bytes) {
  if (!carrying_) return shake(bytes);
  frames_.feed(bytes);
  while (is_open() && !finishing_) {
    const auto message = frames_.next();
    if (!message) break;
    if (!std::exchange(has_message_, true)) deadline_.cancel();
    if (on_message) on_message(*message);
  }
  if (frames_.broken()) end("it sent what is no control message");
}

void Link::shake(std::span<const std::byte> bytes) {
  if (!bytes.empty()) handshake_.feed(bytes);
  const auto answer = handshake_.take_output();
  out_.insert(out_.end(), answer.begin(), answer.end());
  write();
  if (handshake_.failed()) return end(handshake_.reason());
  if (!handshake_.done()) {
    // This end may have got no processor for long. But it has just said its proof. So the other end has the connection,
    // and would take the end of the connection for the death of the process.
    if (!answer.empty() && handshake_.awaits_verdict()) await_answer();
    if (bytes.empty()) wait_until_readable();
    return;
  }
  deadline_.cancel();
  if (on_authenticated) on_authenticated();
}

}  // namespace tutti::internal
