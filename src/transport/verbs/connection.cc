#include "transport/verbs/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/verbs/greeting.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {

Connection::Connection(Endpoint& endpoint, std::uint64_t communicator, int peer)
    : endpoint_(endpoint),
      communicator_(communicator),
      peer_(peer),
      mailbox_(endpoint.mailboxes.of(communicator, peer)) {}

Connection::~Connection() {
  endpoint_.mailboxes.drop(communicator_, peer_);
  if (pair_ != nullptr) {
    pair_->close();
    --endpoint_.queue_pairs;
  }
  if (fd_ < 0) return;
  endpoint_.sleeper.unwatch(fd_);
  close(fd_);
}

bool Connection::take_news() {
  if (mailbox_->has_news()) begin();
  while (fd_ >= 0 && failed_.empty() && !joined_ && hear()) {
  }
  return is_joined();
}

// A socket, or why there is none.
void Connection::begin() {
  Mailbox::News news = mailbox_->take();
  if (news.fd >= 0) {
    fd_ = news.fd;
    try {
      endpoint_.sleeper.watch(fd_);
      greet();
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  if (!news.why.empty()) fail(news.why);
}

void Connection::greet() {
  Greeting greeting;
  try {
    block_ = std::make_unique<Block>(*endpoint_.fabric);
    pair_ = endpoint_.fabric->queue_pair({kWrites, kArrivals});
    ++endpoint_.queue_pairs;
    pair_->arm();  // this rank may be about to sleep
    greeting.address = pair_->address();
    greeting.block = block_->place();
  } catch (const Error& error) {
    greeting.error_text = error.what();
    fail(error.what());
  }
  const auto bytes = greeting.encode();
  if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(bytes.size()))
    fail(std::string("cannot greet the peer: ") + std::strerror(errno));
}

// The peer's greeting, then its word that it is joined. True if anything came.
bool Connection::hear() {
  const auto end = [this](const std::string& why) {
    fail(why);
    return false;
  };
  std::byte buffer[Greeting::kBytes + 1];
  const ssize_t got = ::recv(fd_, buffer, Greeting::kBytes + 1 - heard_.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (got <= 0)
    return end(got == 0 ? "the peer closed the connection" : std::string("cannot receive: ") + std::strerror(errno));
  heard_.insert(heard_.end(), buffer, buffer + got);
  if (heard_.size() >= Greeting::kBytes && !is_reachable_) {
    const auto greeting = Greeting::decode(std::span(heard_).first<Greeting::kBytes>());
    if (!greeting) return end("the peer does not speak this version of verbs");
    if (!greeting->error_text.empty()) return end("the peer cannot use verbs: " + greeting->error_text);
    try {
      pair_->connect(greeting->address);
    } catch (const Error& error) {
      return end(error.what());
    }
    is_reachable_ = true;
    if (::send(fd_, &Greeting::kJoined, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
      return end("the peer closed the connection");
  }
  if (heard_.size() <= Greeting::kBytes) return true;
  const auto greeting = Greeting::decode(std::span(heard_).first<Greeting::kBytes>());
  joined_.emplace(JoinedPair{*pair_, *block_, greeting->block});
  look_for_hang_up();  // the news of it may have come with these bytes
  return true;
}

// Whatever the peer wrote before it closed its socket has arrived: it waits for that.
void Connection::look_for_hang_up() {
  std::byte byte;
  const ssize_t got = ::recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got == 0) fail("the peer closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR)
    fail(std::string("the connection to the peer failed: ") + std::strerror(errno));
}

}  // namespace tutti::internal::verbs
