// One communicator's path to one rank of the same host: a lane each way.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/shm/lane.h"
#include "transport/shm/ring_writer.h"
#include "transport/shm/transport.h"

namespace tutti::shm {

// A queue without allocation in steady state.
template <class T>
class Fifo {
 public:
  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  T& front() { return items_[head_ & mask_]; }
  T& push(const T& item) {
    if (size() == items_.size()) grow();
    return items_[tail_++ & mask_] = item;
  }
  void pop() { ++head_; }

 private:
  void grow() {
    std::vector<T> larger(items_.size() * 2);
    for (std::size_t i = head_; i != tail_; ++i) larger[i - head_] = items_[i & mask_];
    tail_ -= head_;
    head_ = 0;
    items_.swap(larger);
    mask_ = items_.size() - 1;
  }
  std::vector<T> items_ = std::vector<T>(8);
  std::size_t mask_ = 7, head_ = 0, tail_ = 0;
};

inline constexpr std::uint64_t kTotalMask = (std::uint64_t{1} << 48) - 1;
inline Tag tag_of(const std::uint64_t (&word)[2]) { return Tag{{word[0], word[1]}}; }
inline LineKind kind_of(const Line& line) {
  return static_cast<LineKind>(line.kind_and_total.load(std::memory_order_relaxed) >> 48);
}
inline std::size_t total_of(const Line& line) {
  return line.kind_and_total.load(std::memory_order_relaxed) & kTotalMask;
}

class Channel final : public tutti::Channel {
 public:
  Channel(Transport& transport, std::uint64_t communicator, int rank, int peer);
  ~Channel() override;

  void send(const Tag& tag, const std::byte* data, std::size_t bytes) override;
  std::uint64_t sent() override;
  std::byte* reserve(const Tag& tag, std::size_t bytes, const std::byte* source) override;
  void commit(const Tag& tag) override;
  void check_reserved() override;
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, bool past_cache) override;
  std::uint64_t received() override;
  bool view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) override;
  void release(std::size_t bytes) override;
  bool progress() override;
  void flush() override;
  bool unclaimed(Tag& tag) override;
  bool withdraw() override;

 private:
  struct Outgoing {  // lent by send(), not yet written to the lane in full
    Tag tag;
    const std::byte* data;
    std::size_t bytes, done;
  };
  struct Lent {  // announced in place; comes back with the acknowledgement of its line
    std::uint64_t message;
    std::uint32_t line;
  };
  struct Wanted {  // lent by receive()
    std::uint64_t message;
    Tag tag;
    std::byte* data;
    std::size_t bytes, done;
    bool past_cache;
  };

  bool connect() { return out_ != nullptr || find_peer(); }
  bool find_peer();
  bool push(Outgoing& message);
  bool push_inside(const Tag& tag, const std::byte* data, std::size_t bytes);
  bool is_lent(const std::byte* data, std::size_t bytes, std::uint64_t& at) const;
  bool room_for_line() {
    if (line_out_ - acked_ >= kLines) refresh_ack();
    return line_out_ - acked_ < kLines;
  }
  Line& next_line() { return out_->lines[line_out_ % kLines]; }
  void announce(Line& line, const Tag& tag, LineKind kind, std::uint64_t total);
  std::byte* posted_for(std::uint64_t message, std::size_t bytes, const Tag& tag);
  void write_waiting_post();
  void throw_if_withdrawn() const {
    if (in_->withdrawn.load(std::memory_order_relaxed) != 0) throw_withdrawn();
  }
  [[noreturn]] void throw_withdrawn() const;
  [[noreturn]] void throw_makes_no_sense(const char* what) const;
  // What lies outside the window of lines not yet acknowledged is old: the word by itself may lag far behind the
  // stamps.
  void read_ack(std::uint32_t ack) {
    const std::uint32_t ahead = ack - acked_;
    if (ahead == 0 || ahead > line_out_ - acked_) return;
    acked_ = ack;
    ring_tail_ = std::max(ring_tail_, ring_end_[(acked_ - 1) % kLines]);
  }
  void refresh_ack();
  void drop_returned();

  // The owner of the memory just written to may be asleep. No fence here: a rank that goes to sleep makes every running
  // peer pass one first (Transport::before_sleep), which keeps this path free of a full fence a message.
  void notify() {
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (theirs_->header().sleeping.load(std::memory_order_relaxed) != 0) ring_bell();
  }
  void ring_bell() const;
  [[noreturn]] void throw_gone() const;

  const Line* arrived() {
    const Line& line = in_->lines[line_in_ % kLines];
    const std::uint64_t stamp = line.stamp.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(stamp) != line_in_ + 1) return nullptr;
    read_ack(static_cast<std::uint32_t>(stamp >> 32));
    if (noted_ != line_in_ + 1) note(line);
    return &line;
  }
  void note(const Line& line);
  const Line* awaited();
  const Line* checked(const Tag& tag, std::size_t bytes);
  // left: bytes of the message that have not come before this line.
  std::span<const std::byte> payload(const Line& line, std::size_t left) const;
  void consume_line(bool peer_waits);
  bool fill();

  bool ring_room(std::size_t bytes, std::uint64_t& at);

  Transport& transport_;
  const std::uint64_t communicator_;
  const int rank_, peer_;
  const std::size_t ring_bytes_;  // a power of two
  std::uint64_t in_offset_, out_offset_ = 0;
  Lane* in_;             // in my segment: the peer writes
  Lane* out_ = nullptr;  // in the peer's segment: I write; null until the peer's end has been found
  std::shared_ptr<Peer> who_;
  Segment* theirs_ = nullptr;                  // null until the exchange with the peer is done
  std::optional<std::uint64_t> withdrawn_in_;  // the peer's turn

  // sending
  Fifo<Outgoing> outgoing_;
  Fifo<Lent> lent_;
  std::uint64_t messages_out_ = 0;       // numbered so far (sent, waiting, or committed)
  std::uint64_t pushed_ = 0;             // of those, written to the lane in full
  std::uint32_t line_out_ = kFirstLine;  // lines written
  std::uint32_t acked_ = kFirstLine;     // of those, consumed by the peer
  std::uint64_t ring_head_ = 0;          // bytes of the ring ever used
  std::uint64_t ring_tail_ = 0;          // of those, free again
  std::uint64_t ring_end_[kLines] = {};  // ring_head_ after line k
  bool ring_claimed_ = false;
  RingWriter ring_writer_;
  LineKind reserved_ = LineKind::delivered;  // between reserve() and commit()
  std::uint64_t reserved_at_ = 0;
  std::size_t reserved_bytes_ = 0;

  std::array<PostedAt, kPosts> posts_in_{};  // what lines have brought
  std::uint32_t noted_ = kFirstLine;         // lines looked at for that

  // receiving
  Fifo<Wanted> wanted_;
  PostedAt waiting_post_{};  // for a line of the same tag, the next flush or post
  Tag waiting_tag_;
  std::uint64_t messages_done_ = 0;  // consumed in full
  std::uint64_t received_ = 0;
  std::uint32_t line_in_ = kFirstLine;             // lines consumed
  std::uint32_t acknowledged_alone_ = kFirstLine;  // of those, told to the peer by the word
  std::uint32_t acknowledged_ = kFirstLine;        // of those, told to the peer
  bool peer_waits_ = false;                        // a lent message is among those not yet told
  bool viewing_ = false;                           // a viewed message is claimed and not yet released in full
  std::size_t view_left_ = 0;                      // of it, bytes not yet released
  std::size_t view_at_ = 0;                        // bytes released of the line at hand
};

}  // namespace tutti::shm
