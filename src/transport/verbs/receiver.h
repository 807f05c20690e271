// The receiving half of a verbs channel: what has arrived in the ring or been placed meets what has been claimed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>

#include "transport/claims.h"
#include "transport/header.h"
#include "transport/transport.h"
#include "transport/verbs/joined_pair.h"
#include "transport/verbs/layout.h"
#include "transport/verbs/registry.h"

namespace tutti::internal::verbs {

class Receiver {
 public:
  Receiver(std::uint64_t communicator, int peer, const Registry& registry)
      : communicator_(communicator), peer_(peer), registry_(registry) {}

  const Claims& claims() const { return claims_; }
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes);
  void view(const Tag& tag, std::size_t bytes) { claims_.view(tag, bytes); }
  void release(std::size_t bytes, JoinedPair& joined);

  // What the peer has written: a fragment behind the last one, or all that an offer was for. False: it may not have. A
  // fragment that is the whole of what a receive waits for is delivered here and now.
  bool fragment(std::size_t bytes, JoinedPair& joined);
  void placed() { arrivals_.push_back({0, 0, true}); }

  // Moves what has arrived into posted receives; true if anything moved. Throws TagMismatch, LengthMismatch, and
  // ChannelClosed where the peer does not do as it should.
  bool absorb(JoinedPair& joined);

  // Tells the peer where large messages may go, and what it has back. True if it wrote anything.
  bool tell(JoinedPair& joined);
  bool has_to_tell() const { return !untold_.empty(); }  // offers
  // Something has arrived that no claim has used yet, or a message has begun and is not over.
  bool has_more() const { return header_ || !arrivals_.empty(); }

  // Of the viewed message, the unreleased bytes that are here in one piece; nothing while none is.
  std::optional<std::span<const std::byte>> shown(const JoinedPair& joined) const;

  // The next message if nobody has claimed it.
  std::optional<Tag> unclaimed(JoinedPair& joined);

  // Whether a claim waits for something that has not arrived.
  bool waits() const;

 private:
  struct Arrival {
    std::uint64_t at;   // in the ring, from 0 for ever
    std::size_t bytes;  // not yet used
    bool placed;
  };
  struct Answer {
    Offer offer;
    std::shared_ptr<const Registration> registration;  // of the memory that is offered
  };
  using Answers = std::map<std::uint64_t, Answer>;  // by message
  std::size_t left() const { return header_->total - done_; }
  bool take_at_once(std::uint64_t at, std::size_t bytes, const JoinedPair& joined);
  bool parse_header(JoinedPair& joined);
  const Claim* front_met(JoinedPair& joined);
  void use(std::size_t bytes, JoinedPair& joined);
  void finish_front();
  void drop_if_used(JoinedPair& joined);
  bool offer(const Claim& claim);
  void answer(const Claim& claim);
  [[noreturn]] void reject(const char* what) const;

  const std::uint64_t communicator_;
  const int peer_;
  const Registry& registry_;
  Claims claims_;
  std::deque<Arrival> arrivals_;
  std::uint64_t end_ = 0;             // of the last fragment that has arrived
  std::optional<Header> header_;      // of the message being received
  std::size_t done_ = 0;              // bytes of that message filled or released
  bool answered_ = false;             // that message's header asked where to go, and has been told
  Answers answers_;                   // for messages that are not over
  std::deque<std::uint64_t> untold_;  // of which messages the peer does not have them yet
  std::uint64_t offers_written_ = 0;
};

}  // namespace tutti::internal::verbs
