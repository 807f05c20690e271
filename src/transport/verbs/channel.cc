#include "transport/verbs/channel.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "transport/verbs/greeting.h"
#include "tutti/error.h"

namespace tutti::verbs {
namespace {

constexpr unsigned kIdleBeforeLook = 2048;  // polls between looks at the socket and the device
constexpr std::chrono::seconds kLongestLeaving{1};
constexpr unsigned kTriesBetweenLooks = 64;
constexpr unsigned kUnpolled = 16;  // a rank that only sends hears of a failure too

}  // namespace

Channel::Channel(Transport& transport, std::uint64_t communicator, int peer)
    : transport_(transport),
      communicator_(communicator),
      peer_(peer),
      mailbox_(transport.mailboxes_.of(communicator, peer)),
      sender_(communicator, transport.registry_, transport.fabric_->most_in_a_write()),
      receiver_(communicator, peer, transport.registry_) {
  transport_.channels_.insert(this);
}

Channel::~Channel() {
  leave();
  transport_.channels_.erase(this);
  transport_.mailboxes_.drop(communicator_, peer_);
  if (pair_ != nullptr) {
    pair_->close();
    --transport_.pairs_;
  }
  if (fd_ < 0) return;
  transport_.sleeper_.forget(fd_);
  close(fd_);
}

// Waits until all that was written is at the peer: its memory goes when this end does.
void Channel::leave() {
  if (!line_ || withdrawn_ || !failed_.empty()) return;
  const auto deadline = std::chrono::steady_clock::now() + kLongestLeaving;
  const std::uint64_t last = pair_->written();
  if (last == 0) return;
  bool asked = false, done = false;
  for (unsigned tries = 0; !done && std::chrono::steady_clock::now() < deadline; ++tries) {
    if (tries % kTriesBetweenLooks == 0) look_for_hang_up();
    if (!failed_.empty()) return;  // a peer that has gone answers nothing
    if (!asked) asked = line_->write({}, line_->at(0), Word::credit, true);
    const std::size_t count = pair_->poll(events_);
    for (const Event& event : std::span(events_).first(count))
      done |= event.kind == Event::Kind::failed || (event.kind == Event::Kind::done && asked && event.count > last);
  }
}

// --- sending and receiving -------------------------------------------------------------------------------------------

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes) {
  if (line_ && failed_.empty() && !receiver_.has_to_tell() && sender_.send_at_once(tag, data, bytes, *line_)) return;
  stirred_ = true;
  sender_.push(tag, data, bytes);
  if (line_ && failed_.empty()) write();
}

std::uint64_t Channel::sent() {
  if (!sender_.idle() || ++unpolled_ % kUnpolled == 0) pump();
  return sender_.sent();
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool) {
  receiver_.receive(message, tag, data, bytes);
  stirred_ |= receiver_.has_more() || receiver_.has_to_tell();  // but not now: with those that follow
}

std::uint64_t Channel::received() {
  pump();
  return receiver_.claims().received();
}

bool Channel::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  if (!receiver_.claims().viewing()) {
    stirred_ = true;
    receiver_.view(tag, bytes);
  }
  pump();
  if (!line_) return false;
  const std::optional<std::span<const std::byte>> shown = receiver_.shown(*line_);
  if (shown) here = *shown;
  return shown.has_value();
}

void Channel::release(std::size_t bytes) {
  stirred_ = true;
  receiver_.release(bytes, *line_);
  if (failed_.empty()) receiver_.tell(*line_);
}

bool Channel::progress() { return pump(); }

bool Channel::unclaimed(Tag& tag) try {
  if (!withdrawn_) poll();
  if (!line_) return false;
  const std::optional<Tag> next = receiver_.unclaimed(*line_);
  if (next) tag = *next;
  return next.has_value();
} catch (const ChannelClosed&) {
  return false;
}

bool Channel::withdraw() {
  if (!withdrawn_ && pair_ != nullptr) {
    poll();  // what has arrived may be asked for: unclaimed()
    pair_->close();
  }
  withdrawn_ = true;
  return true;
}

// --- moving ----------------------------------------------------------------------------------------------------------

bool Channel::pump() {
  bool moved = poll();
  if (line_ && stirred_) {
    moved |= receiver_.absorb(*line_);
    if (failed_.empty()) moved |= write();
    stirred_ = moved;
  }
  // Not before all that has arrived has been taken in.
  if (!moved && !failed_.empty() && waits()) throw ChannelClosed{peer_, failed_};
  return moved;
}

// What the peer waits for goes before data: some devices send while they are given work, and data takes long.
bool Channel::write() {
  const bool told = receiver_.tell(*line_);
  return sender_.write(*line_) || told;
}

bool Channel::poll() {
  if (mailbox_->has_news()) look_for_news();
  if (!line_) {
    while (fd_ >= 0 && failed_.empty() && !line_ && hear()) {
    }
    if (!line_) return false;
  }
  if (take_in()) {
    idle_ = 0;
    return true;
  }
  if (++idle_ % kIdleBeforeLook != 0) return false;
  look_for_hang_up();
  if (waits()) hear_of(transport_.fabric_->trouble());
  return !failed_.empty() && take_in();  // what came in between the looks
}

// What the queue pair tells.
bool Channel::take_in() {
  const std::size_t count = pair_->poll(events_);
  for (const Event& event : std::span(events_).first(count)) {
    switch (event.kind) {
      case Event::Kind::done: sender_.done(event.count); break;
      case Event::Kind::failed: fail(pair_->why()); break;
      case Event::Kind::arrived:
        sender_.heard(event.word);
        switch (kind_of(event.word)) {
          case Word::fragment:
            if (!receiver_.fragment(event.bytes, *line_)) fail("the peer sent more than its credit");
            break;
          case Word::placed: receiver_.placed(); break;
          case Word::credit: break;
          case Word::offers: take_offers(event.bytes / Offer::kBytes); break;
        }
        break;
    }
  }
  if (count > 0) stirred_ |= !sender_.idle() || receiver_.has_more() || receiver_.has_to_tell() || line_->owes_credit();
  return count > 0;
}

void Channel::take_offers(std::size_t count) {
  for (; count > 0; --count) {
    const std::size_t offset = kOffersAt + offers_heard_++ % kOffers * Offer::kBytes;
    sender_.offered(Offer::decode(std::span<const std::byte, Offer::kBytes>(block_->data() + offset, Offer::kBytes)));
  }
}

void Channel::fail(const std::string& why) {
  if (failed_.empty()) failed_ = why;
}

// --- joining the peer ------------------------------------------------------------------------------------------------

void Channel::look_for_news() {
  Mailbox::News news = mailbox_->take();
  if (news.fd >= 0) {
    fd_ = news.fd;
    try {
      transport_.sleeper_.watch(fd_);
      greet();
    } catch (const Error& error) {
      fail(error.what());
    }
  }
  if (!news.why.empty()) fail(news.why);
}

void Channel::greet() {
  Greeting greeting;
  try {
    block_ = std::make_unique<Block>(*transport_.fabric_);
    pair_ = transport_.fabric_->queue_pair({kWrites, kArrivals});
    ++transport_.pairs_;
    pair_->arm();  // this rank may be about to sleep
    greeting.address = pair_->address();
    greeting.block = block_->place();
  } catch (const Error& error) {
    greeting.trouble = error.what();
    fail(error.what());
  }
  const auto bytes = greeting.encode();
  if (::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) != static_cast<ssize_t>(bytes.size()))
    fail(std::string("cannot greet the peer: ") + std::strerror(errno));
}

// The peer's greeting, then its word that it is joined. True if anything came.
bool Channel::hear() {
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
  if (heard_.size() >= Greeting::kBytes && !joined_) {
    const auto greeting = Greeting::decode(std::span(heard_).first<Greeting::kBytes>());
    if (!greeting) return end("the peer does not speak this version of verbs");
    if (!greeting->trouble.empty()) return end("the peer cannot use verbs: " + greeting->trouble);
    try {
      pair_->connect(greeting->address);
    } catch (const Error& error) {
      return end(error.what());
    }
    joined_ = true;
    if (::send(fd_, &Greeting::kJoined, 1, MSG_NOSIGNAL | MSG_DONTWAIT) != 1)
      return end("the peer closed the connection");
  }
  if (heard_.size() <= Greeting::kBytes) return true;
  const auto greeting = Greeting::decode(std::span(heard_).first<Greeting::kBytes>());
  line_.emplace(Line{*pair_, *block_, greeting->block});
  look_for_hang_up();  // the news of it may have come with these bytes
  return true;
}

// Whatever the peer wrote before it closed its socket has arrived: it waits for that.
void Channel::look_for_hang_up() {
  std::byte byte;
  const ssize_t got = ::recv(fd_, &byte, 1, MSG_DONTWAIT | MSG_PEEK);
  if (got == 0) fail("the peer closed the connection");
  if (got < 0 && errno != EAGAIN && errno != EINTR)
    fail(std::string("the connection to the peer failed: ") + std::strerror(errno));
}

// A link that is down while nobody waits may be up again when somebody does.
void Channel::hear_of(const std::string& trouble) {
  if (!trouble.empty() && waits()) fail(trouble);
}

}  // namespace tutti::verbs
