#include "transport/tcp/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>

namespace tutti::internal::tcp {
namespace {

// What may lie between two ranks of one host, so that the receiver still finds it in the cache (the system doubles it).
// By itself the system lets some megabytes pile up. all_reduce of 16 MiB over the loopback, with and without, us:
// 2 ranks 3700 to 4500 and 5700 to 6600; 4 ranks on 2 cores 12900 to 13700 and 19200 to 20700. Half and 1.4 times as
// much are as good.
constexpr int kLoopbackBytes = 256 << 10;

bool is_loopback(int fd) {
  sockaddr_storage own{}, peers{};
  socklen_t own_size = sizeof own, peers_size = sizeof peers;
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peers), &peers_size) != 0 || own.ss_family != peers.ss_family)
    return false;
  if (own.ss_family == AF_INET)
    return reinterpret_cast<sockaddr_in&>(own).sin_addr.s_addr == reinterpret_cast<sockaddr_in&>(peers).sin_addr.s_addr;
  return own.ss_family == AF_INET6 &&
         std::memcmp(&reinterpret_cast<sockaddr_in6&>(own).sin6_addr, &reinterpret_cast<sockaddr_in6&>(peers).sin6_addr,
                     sizeof(in6_addr)) == 0;
}

// What is refused costs speed only: sockets that are not TCP know no delay.
void set_options(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (is_loopback(fd)) setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kLoopbackBytes, sizeof kLoopbackBytes);
}

}  // namespace

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

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier) {
  const bool first = sender_.idle();
  sender_.push(tag, data, bytes);
  if (first) write();
}

std::uint64_t Channel::sent() {
  write();
  return sender_.sent();
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, const ReceiveHints&) {
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
    set_options(fd_);
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
