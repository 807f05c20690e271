// What this rank has consumed of the lines that the peer writes, and what of that the peer has been told. The line of a
// fragment whose space this rank keeps (Kept) is not acknowledged, nor are those after it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/shm/kept.h"
#include "transport/shm/lane.h"

namespace tutti::internal::shm {

class Acks {
 public:
  explicit Acks(std::size_t ring_bytes) : kept_(ring_bytes) {}

  std::uint32_t consumed() const { return consumed_; }  // the number of the first line that has not been
  Kept& kept() { return kept_; }

  // The first line has been consumed. peer_waits: for its acknowledgement.
  void consume(bool peer_waits) {
    ++consumed_;
    if (!peer_waits) return;
    peer_waits_ = true;
    kept_.give_up();
  }
  // Likewise, where it announced a fragment in the peer's ring, [data, data + bytes). `lines`: of this rank.
  void consume_fragment(std::byte* data, std::size_t bytes, const Unread& lines);
  // Room for `bytes` in kept space, or nullptr. What is too short for them is given up.
  std::byte* find_kept(std::size_t bytes);

  // Lines below this number may be acknowledged.
  std::uint32_t given_back() const { return kept_.empty() ? consumed_ : kept_.first_line(); }
  // Whether the peer may wait for an acknowledgement, or has few lines left. Once in a long while one goes anyway, so
  // that Lane::ack cannot lag by a whole round of the counter.
  bool are_owed() const { return peer_waits_ || consumed_ - told_ >= kRow / 4 || consumed_ - told_alone_ >= kMaxLag; }
  // A line has taken given_back() along.
  void tell(std::uint32_t given_back) {
    told_ = given_back;
    peer_waits_ = false;
  }
  // What has come of are_owed(): writes to `ack` what the peer has not been told. False: nothing.
  bool tell_alone(std::atomic<std::uint32_t>& ack);
  // Whether the peer has been told of all lines below number `line`.
  bool told_of(std::uint32_t line) const { return static_cast<std::int32_t>(told_ - line) >= 0; }

 private:
  static constexpr std::uint32_t kMaxLag = 1u << 30;  // lines

  std::uint32_t consumed_ = kFirstLine;
  std::uint32_t told_ = kFirstLine;        // lines below this number have been acknowledged
  std::uint32_t told_alone_ = kFirstLine;  // by Lane::ack
  bool peer_waits_ = false;
  bool has_exchanged_ = false;
  Kept kept_;
};

}  // namespace tutti::internal::shm
