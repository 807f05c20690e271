// The sending half of a channel: what is copied or lent, announced, and comes back with acknowledgements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/shm/fifo.h"
#include "transport/shm/fragments.h"
#include "transport/shm/lines.h"
#include "transport/shm/private_memory.h"
#include "transport/shm/resend.h"
#include "transport/shm/split.h"
#include "transport/transport.h"
#include "types/tag.h"

namespace tutti::internal::shm {

// Memory whose place is known.
struct LookedUp {
  const std::byte* data = nullptr;
  std::size_t bytes = 0;
  Place place;
};

class Sender {
 public:
  explicit Sender(Lines& lines) : lines_(lines), fragments_(lines), resend_(lines), splits_(lines) {}

  // As of internal::Channel.
  void send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier copier);
  std::uint64_t sent() { return has_all_back() ? pushed_ : returned(); }
  // A message in private memory may need this rank once more (Resend).
  std::uint64_t published() {
    sent();
    for (std::size_t i = 0; i < lent_.size(); ++i)
      if (lent_[i].readable) return lent_[i].message;
    return pushed_;
  }
  // The last message that the peer has not given back, if any. Throws nothing.
  const Lent* last_lent() {
    if (lent_.empty()) return nullptr;
    lines_.refresh_acked();
    while (!lent_.empty() && !lines_.unread().has(lent_.front().line)) lent_.pop();
    splits_.forget_acknowledged();
    return lent_.empty() ? nullptr : &lent_[lent_.size() - 1];
  }
  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source, Copier copier, bool past_cache);
  void commit(const Tag& tag);
  bool reads_from_far(std::size_t bytes) {
    if (bytes < kCopyBelowBytes || !lines_.lanes().is_connected()) return false;
    fragments_.look(bytes);
    return fragments_.is_far();
  }
  bool prepare_at_once(const std::byte* data, std::size_t bytes, Copier copier) {
    return waiting_.empty() && lines_.lanes().is_connected() && lines_.has_room() &&
           (bytes <= kInlineBytes || prepare_fragment(data, bytes, copier));
  }
  void send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes);
  void check_reserved() const {
    if (reserved_ == LineKind::delivered) lines_.lanes().throw_if_withdrawn();
  }

  // Whether nothing is lent by send().
  bool has_all_back() const { return waiting_.empty() && lent_.empty(); }
  // Whether messages wait that have not been written to the lane in full.
  bool has_waiting() const { return !waiting_.empty(); }
  // Writes what can be written of what waits. True if anything was.
  bool push_waiting() {
    if (resend_.answer(lent_)) readable_ = {};  // which is out of date
    const bool wrote = splits_.write_part();
    return (!waiting_.empty() && push_some()) || wrote;
  }

 private:
  struct Message {  // not yet written to the lane in full
    Tag tag;
    const std::byte* data;
    std::size_t bytes, done;
    Copier copier;
  };
  bool push(Message& message);
  void push_inside(const Tag& tag, const std::byte* data, std::size_t bytes);
  bool push_by_ring(Message& message);
  bool prepare_fragment(const std::byte* data, std::size_t bytes, Copier copier);
  bool push_some();
  std::uint64_t returned();

  Lines& lines_;
  Fragments fragments_;
  Fifo<Message> waiting_;
  Fifo<Lent> lent_;
  std::uint64_t pushed_ = 0;  // messages written to the lane in full; the number of the next one
  LookedUp looked_up_;        // by reserve(), for the send() that follows it
  bool copies_next_ = false;  // reserve() has left a result to the send() that follows it
  ReadableMemory readable_;
  Resend resend_;
  SplitSender splits_;
  LineKind reserved_ = LineKind::delivered;  // between reserve() and commit()
  std::size_t reserved_bytes_ = 0;
};

}  // namespace tutti::internal::shm
