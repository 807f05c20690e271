// The receiving half of a TCP channel: reads what has been claimed, and little more.
//
// Claims are served in order, each by the next message of the stream. Large posted receives are read straight into
// their memory; everything else goes through one buffer, where views are shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "transport/claims.h"
#include "transport/header.h"
#include "transport/transport.h"

namespace tutti::internal::tcp {

class Receiver {
 public:
  Receiver(std::uint64_t communicator, int peer) : communicator_(communicator), peer_(peer) {}

  Claims& claims() { return claims_; }
  void release(std::size_t bytes);

  // Moves what the buffer holds into posted receives; true if anything moved. Throws TagMismatch, LengthMismatch, and
  // ChannelClosed where the stream is not what it should be.
  bool absorb();

  // Once all is absorbed: whether a read could serve a posted receive, and whether one could add to what shown() has.
  bool can_fill() const { return claims_.front() && !claims_.front()->viewed; }
  bool can_show_more() const;

  // The unreleased bytes of the viewed message that are here; nothing while it has not begun to arrive.
  std::optional<std::span<const std::byte>> shown() const;

  // One system call; then absorbs. True if it brought anything. May move what was shown. Throws ChannelClosed too.
  bool read(int fd);

  // The next message if nobody has claimed it; reads its header if it must.
  std::optional<Tag> unclaimed(int fd);

 private:
  std::size_t buffered() const { return end_ - begin_; }
  std::size_t left() const {
    return header_->total - done_;
  }  // of the message being received, not yet filled or released
  bool parse_header();
  const Claim* front_met();
  void finish_front();
  bool has_room() const;
  std::size_t wanted_in_buffer() const;
  void make_room();

  const std::uint64_t communicator_;
  const int peer_;
  std::unique_ptr<std::byte[]> buffer_;  // made at the first read
  std::size_t begin_ = 0, end_ = 0;      // what it holds
  Claims claims_;
  std::optional<Header> header_;  // of the message being received, once it is here
  std::size_t done_ = 0;          // bytes of that message filled or released
};

}  // namespace tutti::internal::tcp
