#include "transport/verbs/channel.h"

#include <chrono>

namespace tutti::internal::verbs {
namespace {

constexpr unsigned kIdleBeforeLook = 2048;  // polls between looks at the socket and the device
constexpr std::chrono::seconds kLongestLeaving{1};
constexpr unsigned kTriesBetweenLooks = 64;
constexpr unsigned kUnpolled = 16;  // a rank that only sends hears of a failure too

}  // namespace

Channel::Channel(Endpoint& endpoint, std::uint64_t communicator, int peer)
    : endpoint_(endpoint),
      peer_(peer),
      sender_(communicator, endpoint.registry, endpoint.fabric->most_in_a_write()),
      receiver_(communicator, peer, endpoint.registry),
      connection_(endpoint, communicator, peer) {
  endpoint_.channels.insert(this);
}

Channel::~Channel() {
  leave();
  endpoint_.channels.erase(this);
}

// Waits until all that was written is at the peer: its memory goes when this end does.
void Channel::leave() {
  if (withdrawn_ || !connection_.is_usable()) return;
  auto deadline = std::chrono::steady_clock::now() + kLongestLeaving;
  const std::uint64_t last = connection_.pair().written();
  if (last == 0) return;
  bool asked = false, done = false;
  for (unsigned tries = 0; !done && (tries == 0 || std::chrono::steady_clock::now() < deadline); ++tries) {
    if (tries % kTriesBetweenLooks == 0) connection_.look_for_hang_up();
    if (!connection_.failed().empty()) return;  // a peer that has gone answers nothing
    if (!asked && (asked = connection_.joined().write({}, connection_.joined().at(0), Word::credit, true)))
      deadline = std::chrono::steady_clock::now() + kLongestLeaving;  // this thread may have got no processor before
    const std::size_t count = connection_.pair().poll(events_);
    for (const Event& event : std::span(events_).first(count))
      done |= event.kind == Event::Kind::failed || (event.kind == Event::Kind::done && asked && event.count > last);
  }
}

// --- sending and receiving -------------------------------------------------------------------------------------------

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier) {
  if (connection_.is_usable() && !receiver_.has_to_tell() &&
      sender_.send_at_once(tag, data, bytes, connection_.joined()))
    return;
  stirred_ = true;
  sender_.push(tag, data, bytes);
  if (connection_.is_usable()) write();
}

std::uint64_t Channel::sent() {
  if (!sender_.idle() || ++unpolled_ % kUnpolled == 0) pump();
  return sender_.sent();
}

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, const ReceiveHints&) {
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
  if (!connection_.is_joined()) return false;
  const std::optional<std::span<const std::byte>> shown = receiver_.shown(connection_.joined());
  if (shown) here = *shown;
  return shown.has_value();
}

void Channel::release(std::size_t bytes) {
  stirred_ = true;
  receiver_.release(bytes, connection_.joined());
  if (connection_.failed().empty()) receiver_.tell(connection_.joined());
}

bool Channel::progress() { return pump(); }

bool Channel::unclaimed(Tag& tag) try {
  if (!withdrawn_) poll();
  if (!connection_.is_joined()) return false;
  const std::optional<Tag> next = receiver_.unclaimed(connection_.joined());
  if (next) tag = *next;
  return next.has_value();
} catch (const ChannelClosed&) {
  return false;
}

bool Channel::withdraw() {
  if (!withdrawn_ && connection_.has_pair()) {
    poll();  // what has arrived may be asked for: unclaimed()
    connection_.pair().close();
  }
  withdrawn_ = true;
  return true;
}

// --- moving ----------------------------------------------------------------------------------------------------------

bool Channel::pump() {
  bool moved = poll();
  if (connection_.is_joined() && stirred_) {
    moved |= receiver_.absorb(connection_.joined());
    if (connection_.failed().empty()) moved |= write();
    stirred_ = moved;
  }
  // Not before all that has arrived has been taken in.
  if (!moved && !connection_.failed().empty() && waits()) throw ChannelClosed{peer_, connection_.failed()};
  return moved;
}

// What the peer waits for goes before data: some devices send while they are given work, and data takes long.
bool Channel::write() {
  const bool told = receiver_.tell(connection_.joined());
  return sender_.write(connection_.joined()) || told;
}

bool Channel::poll() {
  if (!connection_.join()) return false;
  if (take_in()) {
    idle_ = 0;
    return true;
  }
  if (++idle_ % kIdleBeforeLook != 0) return false;
  connection_.look_for_hang_up();
  if (waits()) hear_of(endpoint_.fabric->error_text());
  return !connection_.failed().empty() && take_in();  // what came in between the looks
}

// What the queue pair tells.
bool Channel::take_in() {
  const std::size_t count = connection_.pair().poll(events_);
  for (const Event& event : std::span(events_).first(count)) {
    switch (event.kind) {
      case Event::Kind::done: sender_.done(event.count); break;
      case Event::Kind::failed: connection_.fail(connection_.pair().why()); break;
      case Event::Kind::arrived:
        sender_.heard(event.word);
        switch (kind_of(event.word)) {
          case Word::fragment:
            if (!receiver_.fragment(event.bytes, connection_.joined()))
              connection_.fail("the peer sent more than its credit");
            break;
          case Word::placed: receiver_.placed(); break;
          case Word::credit: break;
          case Word::offers: take_offers(event.bytes / Offer::kBytes); break;
        }
        break;
    }
  }
  if (count > 0)
    stirred_ |=
        !sender_.idle() || receiver_.has_more() || receiver_.has_to_tell() || connection_.joined().owes_credit();
  return count > 0;
}

void Channel::take_offers(std::size_t count) {
  for (; count > 0; --count) {
    const std::size_t offset = kOffersAt + offers_heard_++ % kOffers * Offer::kBytes;
    sender_.offered(
        Offer::decode(std::span<const std::byte, Offer::kBytes>(connection_.block().data() + offset, Offer::kBytes)));
  }
}

// A link that is down while nobody waits may be up again when somebody does.
void Channel::hear_of(const std::string& error_text) {
  if (!error_text.empty() && waits()) connection_.fail(error_text);
}

}  // namespace tutti::internal::verbs
