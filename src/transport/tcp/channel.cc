#include "transport/tcp/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

namespace tutti::internal::tcp {

Channel::Channel(Sleeper& sleeper, Mailboxes& mailboxes, std::uint64_t communicator, int peer)
    : sleeper_(sleeper),
      mailboxes_(mailboxes),
      communicator_(communicator),
      peer_(peer),
      mailbox_(mailboxes.of(communicator, peer)),
      sender_(communicator, peer),
      receiver_(communicator, peer) {}

Channel::~Channel() {
  mailboxes_.drop(communicator_, peer_);
  if (fd_ < 0) return;
  sleeper_.unwatch(fd_);
  close(fd_);
}

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes) {
  const bool first = sender_.idle();
  sender_.push(tag, data, bytes);
  if (first) write();
}

std::uint64_t Channel::sent() {
  write();
  return sender_.sent();
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool) {
  receiver_.claims().receive(message, tag, data, bytes);
}

std::uint64_t Channel::received() {
  fill();
  return receiver_.claims().received();
}

bool Channel::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  if (!receiver_.claims().viewing()) receiver_.claims().view(tag, bytes);
  receiver_.absorb();
  if (receiver_.can_show_more()) read();
  const std::optional<std::span<const std::byte>> shown = receiver_.shown();
  if (shown) here = *shown;
  return shown.has_value();
}

void Channel::release(std::size_t bytes) { receiver_.release(bytes); }

bool Channel::progress() {
  const bool wrote = write();
  return fill() || wrote;
}

bool Channel::unclaimed(Tag& tag) try {
  connected();
  const std::optional<Tag> next = receiver_.unclaimed(fd_);
  if (next) tag = *next;
  return next.has_value();
} catch (const ChannelClosed&) {
  return false;
}

// --- the socket ------------------------------------------------------------------------------------------------------

bool Channel::connected() {
  if (!mailbox_->has_news()) return fd_ >= 0;
  Mailbox::News news = mailbox_->take();
  failed_ = std::move(news.why);
  if (news.fd >= 0) {
    fd_ = news.fd;
    const int on = 1;  // refused by sockets that are not TCP, which never wait anyway
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    sleeper_.watch(fd_);
  }
  return fd_ >= 0;
}

bool Channel::write() {
  if (sender_.idle()) return false;
  if (connected() && sender_.write(fd_)) return true;
  if (!failed_.empty()) throw ChannelClosed{peer_, failed_};
  return false;
}

bool Channel::fill() {
  const bool moved = receiver_.absorb();
  return (receiver_.can_fill() && read()) || moved;
}

bool Channel::read() {
  if (connected() && receiver_.read(fd_)) return true;
  // What had arrived before the connection was given up has been read by now.
  if (!failed_.empty()) throw ChannelClosed{peer_, failed_};
  return false;
}

}  // namespace tutti::internal::tcp
