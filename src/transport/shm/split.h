// Messages that both ranks copy (Split): the receiver reads parts of the sender's memory, and the sender writes parts
// to the receiver's. Otherwise one core would do all the work. A rank that is late leaves its parts to the other one.
// What is symmetric memory a rank reads or writes itself; what is private, the system does for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/shm/fifo.h"
#include "transport/shm/lines.h"
#include "transport/transport.h"
#include "types/tag.h"

namespace tutti::internal::shm {

// Of a message of `total` bytes, more than none, and at most kMostSplitBytes. A part is copied at once, so it is short:
// 1 MiB takes 0.1 ms.
class Parts {
 public:
  explicit Parts(std::size_t total)
      : total_(total),
        bytes_(std::clamp(whole_pages(total / 32), std::min(kLeastBytes, whole_pages((total + 1) / 2)), kMostBytes)) {}
  std::uint32_t count() const { return static_cast<std::uint32_t>((total_ + bytes_ - 1) / bytes_); }
  std::size_t begin(std::uint32_t part) const { return part * bytes_; }
  std::size_t bytes(std::uint32_t part) const { return std::min(bytes_, total_ - begin(part)); }

  static constexpr std::size_t kMostBytes = 1 << 20;

 private:
  static constexpr std::size_t kLeastBytes = 64 << 10;
  std::size_t total_, bytes_;
};
inline constexpr std::size_t kMostSplitBytes = 0xffff * Parts::kMostBytes;

// The sender's half.
class SplitSender {
 public:
  explicit SplitSender(Lines& lines) : lines_(lines) {}

  // Whether the next message may be split, if it lies in private memory that the peer can read. (One in symmetric
  // memory may always be.)
  bool can_split(std::size_t bytes) const {
    const auto writes = [](const Lane& lane) { return lane.writes.load(std::memory_order_relaxed) != 0; };
    return bytes <= kMostSplitBytes && can_write_ && writes(lines_.lanes().out());
  }
  // Whether fewer than kSplits have not been acknowledged.
  bool has_room() {
    if (open_.size() < kSplits) return true;
    lines_.refresh_acked();
    forget_acknowledged();
    return open_.size() < kSplits;
  }
  // Message number `message`, which is announced by the next line.
  void add(std::uint64_t message, const Tag& tag, const std::byte* data, std::size_t bytes);
  // Forgets what the peer has acknowledged.
  void forget_acknowledged() {
    while (!open_.empty() && !lines_.unread().has(open_.front().line)) open_.pop();
  }
  // Writes a part of a message, if there is one to write. True if it did.
  bool write_part() { return !open_.empty() && write_some(); }

 private:
  struct Open {
    std::uint64_t message;
    std::uint32_t line, number;
    Tag tag;
    const std::byte* data;
    std::size_t bytes;
    std::uint32_t written;  // parts, from the back
    bool is_done;           // this rank writes no more of it
  };
  bool write_some();
  bool write_part_of(Open& open);

  Lines& lines_;
  Fifo<Open> open_;
  std::uint32_t number_ = 0;  // of the next split message
  bool can_write_ = true;
};

// The receiver's: of one message at a time.
class SplitReceiver {
 public:
  explicit SplitReceiver(Lines& lines) : lines_(lines) {}

  // The next part of the message at hand, of `bytes`, that this rank is to read; nothing if all are taken.
  struct Part {
    std::size_t begin = 0, bytes = 0;
  };
  Part take(std::size_t bytes);
  // Takes all that are left: they come in another way.
  void take_all(std::size_t bytes);
  // Whether the peer writes none any more, all being taken.
  bool is_settled(std::size_t bytes) const;
  // The message has been consumed.
  void pass() {
    ++number_;
    taken_ = 0;
  }

 private:
  Split& split() const { return lines_.lanes().in().splits[number_ % kSplits]; }
  std::uint32_t back_of(std::uint64_t word, std::uint32_t parts) const;
  bool take_parts(std::uint32_t parts, std::uint32_t most);

  Lines& lines_;
  std::uint32_t number_ = 0;  // of the message at hand
  std::uint32_t taken_ = 0;   // parts of it, from the front
};

}  // namespace tutti::internal::shm
