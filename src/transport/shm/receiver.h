// The receiving half of a channel: lines as they arrive, shown where they lie or filled into what was lent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/shm/fifo.h"
#include "transport/shm/lines.h"
#include "transport/shm/private_reader.h"
#include "transport/shm/split.h"
#include "types/tag.h"

namespace tutti::internal::shm {

class Receiver {
 public:
  explicit Receiver(Lines& lines) : lines_(lines), private_(lines), split_(lines) {}

  // As of internal::Channel.
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, const ReceiveHints& hints);
  std::uint64_t received() {
    fill();
    return received_;
  }
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here);
  bool will_rewrite() const {
    return is_in_ring(viewing_ ? shown_.kind : at_once_.kind) && lines_.acks().kept().may_keep();
  }
  void release(std::size_t bytes);
  const std::byte* look_at_once(const Tag& tag, std::size_t bytes);
  void take_at_once(std::byte* to, bool fetches_to_write);
  bool unclaimed(Tag& tag);

  // Moves what has arrived into what was lent. True if anything moved.
  bool fill() { return awaits_wanted() && fill_some(); }

 private:
  struct Wanted {  // lent by receive()
    std::uint64_t message;
    Tag tag;
    std::byte* data;
    std::size_t bytes, done;
    bool past_cache, fetches_to_write;
    Place posted;  // nowhere: not in this rank's segment, or not posted
  };

  bool awaits_wanted() const { return !wanted_.empty() && wanted_.front().message == done_; }
  bool fill_some();
  const Line* awaited();
  void check(const Line& line, const Tag& tag, std::size_t bytes) const;
  std::span<const std::byte> payload(const Line& line, LineKind kind, std::size_t left) const;
  bool fill_from_private(Wanted& want, const Line& line);
  bool fill_by_parts(Wanted& want, const Line& line);
  bool copy_part(const Line& line, const Wanted& want, SplitReceiver::Part part, std::byte* to);
  bool show(const Tag& tag, std::size_t bytes);
  void release_elsewhere();

  Lines& lines_;
  Fifo<Wanted> wanted_;
  std::uint64_t done_ = 0;      // messages consumed in full
  std::uint64_t received_ = 0;  // of those, not viewed
  bool viewing_ = false;        // a viewed message is claimed and not yet released in full
  std::size_t view_left_ = 0;   // of it, bytes not yet released
  struct Shown {                // by view(), of the first line
    bool is_there = false;
    LineKind kind = LineKind::inside;
    bool is_read = false;                  // piece by piece, of private memory
    std::span<const std::byte> all, rest;  // rest: not yet released
  };
  Shown shown_;
  struct AtOnce {  // by look_at_once()
    LineKind kind = LineKind::inside;
    std::span<const std::byte> message;
  };
  AtOnce at_once_;
  PrivateReader private_;
  SplitReceiver split_;
};

}  // namespace tutti::internal::shm
