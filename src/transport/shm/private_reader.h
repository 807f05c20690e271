// What this rank takes of a message in the peer's private memory: by reads; or, once it has declined the message, by
// the pieces that the peer shows (Decline, Resend).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "transport/shm/lines.h"

namespace tutti::internal::shm {

class PrivateReader {
 public:
  explicit PrivateReader(Lines& lines) : lines_(lines) {}

  // Reads the next `bytes` of the message that `line`, the first one, announces. left: how many are not read yet.
  // False: that cannot be, and the message has been declined.
  bool read(const Line& line, std::size_t left, std::byte* to, std::size_t bytes);
  // The next bytes of that message: read, or what the peer shows, or nothing if that is still to come. They stay until
  // the next show() or pass_piece().
  std::span<const std::byte> show(const Line& line, std::size_t left);
  bool is_declined() const { return declined_; }
  // The message has been consumed.
  void pass() { declined_ = false; }

  // --- of a declined message
  // What the peer shows is done with.
  void pass_piece();
  // Copies the next piece. How many bytes it had.
  std::size_t take_piece(std::byte* to, std::size_t left);

 private:
  std::span<const std::byte> piece(std::size_t left) const;

  Lines& lines_;
  bool declined_ = false;
  std::uint32_t pieces_ = 0;            // of declined messages, so far
  std::unique_ptr<std::byte[]> shown_;  // by show(): what has been read
};

}  // namespace tutti::internal::shm
