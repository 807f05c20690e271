// Moves bytes between two ranks. Knows nothing of collectives, elements or schedules.
//
// A Channel is one communicator's two-way path to one peer. Messages of a direction are numbered from 0 and arrive in
// order.
//   sending    send() lends bytes until they have been taken;
//              or reserve() + commit(): write straight to where the peer wants them
//   receiving  receive() lends memory to be filled;
//              or view() + release(): look at the bytes where they already lie
// Nothing here blocks. Nothing is sent without room at the receiver for that communicator and peer (its credit), so an
// unread message of one communicator never holds up another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "types/tag.h"

namespace tutti::internal {

// Thrown by a Channel. The runtime turns it into a tutti::Error that names ranks and calls.
struct TagMismatch {
  int peer;
  Tag mine, theirs;
};
struct LengthMismatch {
  int peer;
  std::uint64_t mine_bytes, theirs_bytes;
};
struct ChannelClosed {
  int peer;
  std::string why;  // "connection reset by peer"
};

// As many receives of one channel are usually posted at once. Where there are more, a transport may copy what comes for
// those beyond.
inline constexpr std::size_t kMaxPostedReceives = 256;

// Who should copy a message that lies in memory which both ranks map (symmetric or adopted). peer: the peer copies it,
// or uses it where it lies. sender: this rank copies, so that it need not wait for the peer. split: both copy parts,
// straight to the receiver's memory; if that is other memory, the peer copies all, unless the peer has
// given ReceiveHints::may_split. far_sender: if the peer's core is far (Channel::reads_from_far()), and the peer has
// said where it wants the message, this rank copies it there. The copy goes past this core's cache where copies are by
// vectors, since the peer would fetch the message slowly from that cache. Else as `peer`.
enum class SharedCopier : std::uint8_t { peer, sender, split, far_sender };
// Likewise one in other memory. each: this rank copies into a buffer, and the peer copies out of it, unless it can use
// the message there. peer: the peer copies alone, straight from this rank's memory. split: both copy parts, straight to
// the receiver's memory; or the peer copies all, if the peer has not given ReceiveHints::may_split. Where the peer
// cannot read this rank's memory, or for split this rank cannot write to the peer's: as `each`.
enum class OrdinaryCopier : std::uint8_t { each, peer, split };

// A hint. What the peer uses or copies stays lent until sent() counts the message.
struct Copier {
  SharedCopier shared = SharedCopier::peer;
  OrdinaryCopier ordinary = OrdinaryCopier::each;

  friend bool operator==(const Copier&, const Copier&) = default;
};

// How a message is best received, whatever the transport makes of it.
struct ReceiveHints {
  bool past_cache = false;        // this core will not read it again soon
  bool fetches_to_write = false;  // where it lies in room that this rank writes to next, its lines are fetched for that
  bool may_split = false;         // into ordinary memory: the peer may write parts of it straight to there
};

class Channel {
 public:
  virtual ~Channel() = default;

  // --- sending -------------------------------------------------------------------------------------------------------
  // Lends data[0, bytes) as the next message, until sent() counts it. Zero bytes is a message too.
  virtual void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier = {}) = 0;

  // Messages given back so far, over the channel's life. May make progress.
  virtual std::uint64_t sent() = 0;

  // Likewise those, from the first one on, that have been given back or that the peer can take without this rank's
  // help. A transport for which these are more than sent() has a keep() as well.
  virtual std::uint64_t published() { return sent(); }

  // Before this end goes: holds `memory` until the peer has taken what is lent, or takes no more.
  virtual void keep(std::shared_ptr<void> memory) { static_cast<void>(memory); }

  // Room for all `bytes` of the next message at the peer, where this transport and the moment allow; else nullptr,
  // which is not an error: use send(). After commit() the message counts as sent. Between the two this channel takes no
  // send(), receive() or reserve().
  // `source`: memory that holds the message, or will, if it is copied and not made; else nullptr. past_cache: it will
  // be written with non-temporal stores, so not to where the peer reads it soon.
  virtual std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source = nullptr, Copier copier = {},
                             bool past_cache = false) = 0;
  virtual void commit(const Tag& tag) = 0;

  // Before `bytes` that the peer will read are written, or lent to it: whether the peer's core is far. If so, what is
  // written should go past the cache, because the peer would fetch it more slowly from this core's cache. May look how
  // far that core is. False if this rank would copy so few bytes.
  virtual bool reads_from_far(std::size_t bytes) {
    static_cast<void>(bytes);
    return false;
  }

  // To be called before a reservation is written to in another turn (Transport::begin_turn) than the one it was made
  // in. Throws ChannelClosed where the peer has withdrawn it.
  virtual void check_reserved() = 0;

  // --- receiving -----------------------------------------------------------------------------------------------------
  // Lends data[0, bytes) to message number `message` of this direction, until received() counts it. Called in ascending
  // order; messages before it that no receive has claimed are left to view().
  virtual void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes,
                       const ReceiveHints& hints = {}) = 0;

  // Posted receives filled so far, over the channel's life (viewed messages do not count here). May make progress.
  virtual std::uint64_t received() = 0;

  // Looks at the first message that no receive has claimed, of `bytes` bytes, and shows what is here of it: true once
  // something is (for an empty message: once it is here), with `here` = the bytes not yet released, contiguous. Call
  // again to see more. Once called, it is to be called until the message has been released: only then may a receive()
  // claim on from there. One message at a time.
  virtual bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) = 0;

  // Whether this rank will soon write where the bytes lie that view(), or look_at_once(), has just shown: that is the
  // room of its own next messages.
  virtual bool will_rewrite() const { return false; }

  // Gives back the first `bytes` of the view. The message is done when all of it has been given back (empty:
  // release(0)).
  virtual void release(std::size_t bytes) = 0;

  // --- short messages, whole ----------------------------------------------------------------------------------------
  // Instead of send(), receive() and view(), for messages of at most most_at_once() bytes: copied at once, or looked
  // at, outside of a turn. None of these throws. Nothing is what a transport says that never does so; then nothing else
  // here is called.
  virtual std::optional<std::size_t> most_at_once() const { return std::nullopt; }
  // Whether the next message can be sent at once: there is room, and `copier` and where the message lies do not ask for
  // send(). After true, send_at_once() of the same bytes cannot fail, if it is the next call of this channel.
  virtual bool prepare_at_once(const std::byte* data, std::size_t bytes, Copier copier = {}) {
    static_cast<void>(data), static_cast<void>(bytes), static_cast<void>(copier);
    return false;
  }
  // Sends the message that prepare_at_once() was asked for. It counts as sent. The peer may have said where it wants
  // the message (receive()); it is copied nevertheless.
  virtual void send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes) {
    static_cast<void>(tag), static_cast<void>(data), static_cast<void>(bytes);
  }
  // The first message that no receive has claimed, if it is here and has this tag and this length; else nullptr.
  // Looking takes nothing, and does what flush() does.
  virtual const std::byte* look_at_once(const Tag& tag, std::size_t bytes) {
    static_cast<void>(tag), static_cast<void>(bytes);
    return nullptr;
  }
  // Takes the message that look_at_once() has just given, and copies it to `to` first, unless that is nullptr. It
  // counts as viewed. fetches_to_write: as of ReceiveHints.
  virtual void take_at_once(std::byte* to = nullptr, bool fetches_to_write = false) {
    static_cast<void>(to), static_cast<void>(fetches_to_write);
  }

  // --- both ----------------------------------------------------------------------------------------------------------
  // Moves what can be moved. True if anything did.
  virtual bool progress() = 0;

  // Makes sure that the peer can see all that it needs (acknowledgements may be held back to travel with the next
  // message). Called by the executor before it waits and when an operation ends.
  virtual void flush() = 0;

  // Whether a message has arrived, or begun to, that nobody has claimed, and its tag: for a rank that looks who has
  // sent, and for the check at the end of a communicator's life.
  virtual bool unclaimed(Tag& tag) = 0;

  // Takes back all that this rank has lent, either way; from then on nothing else may be called but unclaimed() and
  // keep(). True once the peer does not touch that memory and never will (it throws ChannelClosed instead); until then,
  // while a turn of the peer's may be touching it, call again. Outside of a turn.
  virtual bool withdraw() = 0;
};

}  // namespace tutti::internal
