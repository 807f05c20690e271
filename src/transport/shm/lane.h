// A lane is all that one rank (the writer) writes to another (the owner) for one communicator. It lies in the owner's
// segment, so the owner polls its own memory. Two ranks that talk have two lanes, one each way.
//
//   Line[kLines]   announcements, in order. Small payloads travel inside. line_place.h says where which one lies.
//   ack            how many lines of the OTHER lane the writer has consumed (also carried by every line)
//   withdrawn      the writer has given up: nothing it has lent may be touched any more
//   closed         the writer's end of the channel has gone: it reads nothing any more
//   reads          the writer can read the owner's private memory, and does so quickly
//   writes         the writer can write to the owner's private memory
//   decline        a message that the writer cannot read in the owner's private memory, though it was to
//   piece          of such a message the other way: what the writer shows of it
//   Post[kPosts]   places for posts that no line took along
//   Split[kSplits] how far both ranks are with messages of the writer that both copy
//   bytes          a ring for payloads that neither fit a line nor lie in symmetric memory
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "transport/transport.h"

namespace tutti::internal::shm {

// The writer goes round the first kRow lines while messages are long: few, so that they stay in the cache. While
// messages are short it goes round all: so it gets further before it waits for a reader that shares its processor. (4
// ranks on 2 cores, broadcast: 64 B take 0.43 us with 16 lines, 0.21 with 64; but 64 KiB 4.6 us and 5.8.)
inline constexpr std::uint32_t kRow = 16, kLines = 64;
// How far ahead of the message at hand there can be a post. A message whose post goes beyond that is copied. With 32,
// all_reduce of 32 MiB took 3.8 ms, not 2.6.
inline constexpr std::uint32_t kPosts = 256;
static_assert(kPosts >= kMaxPostedReceives);
inline constexpr std::uint32_t kFirstLine = 0u - 8 * kLines;  // soon wraps around, so that every use of a lane tries it
inline constexpr std::size_t kInlineBytes = 1568;
// All ranks of a host find the same lengths for all rings of a job (ring_bytes_for).
inline constexpr std::size_t kMinRingBytes = 256 << 10;
inline constexpr std::size_t kMaxRingBytes = 2 << 20;
// The most that a fragment has; and at most a quarter of what both ways use of a ring, so that copying in and out
// overlap. (2 ranks, own buffers in place: all_reduce of 256 KiB 13.4 us with 64 KiB, 11.6 with 128; of 4 MiB 225 and
// 206.)
inline constexpr std::size_t kFragmentBytes = 128 << 10;
// How much of a ring a fragment takes. The pieces of a message differ by a cache line at times, and each should fit
// where another one has been read (Kept): so they mostly do. Both ranks must round alike. (3 crowded ranks,
// reduce_scatter of 1023 KiB between cores that share no cache: 200 to 256 us at times while pieces did not fit, and 90
// now.)
inline constexpr std::size_t space_of(std::size_t fragment_bytes) {
  const std::size_t grain = fragment_bytes < (16 << 10) ? 64 : 1024;
  return (fragment_bytes + grain - 1) / grain * grain;
}
// If two ranks have a core each (RingBytes::has_short_fragments) and one of them only sends, it cuts a message into so
// many fragments: the peer begins after the first one, and reads the last one alone. But each costs the same to
// announce, so all but the last have kLeastOneWayBytes at least. None has more than kFragmentBytes.
// Broadcast by fragments of 128 KiB and by these, Zen 5: 128 KiB 2.55 us and 2.28, 256 KiB 5.05 and 4.48. Zen 4: 512
// KiB 13.7 and 13.5; if the buffers are rewritten before each call 21.5 and 19.4, and then between cores that share no
// cache 83 to 106 and 34 to 37. Zen 4, by 16 fragments: reduce of 512 KiB 19.2, not 17.9. Zen 5, by fragments of 32
// KiB: broadcast of 256 KiB to 4 ranks on 2 cores 16.6, not 15.5, and all_reduce of 1 MiB 40.5, not 35.6. Not measured
// on an older Xeon. bench/results/2026-11-28-fragments.md.
inline constexpr std::size_t kOneWayFragments = 8, kLeastOneWayBytes = 32 << 10;
inline constexpr std::size_t one_way_fragment_bytes(std::size_t total) {
  constexpr std::size_t kGrain = 4 << 10, kOfAll = kOneWayFragments * kGrain;
  return std::clamp((total + kOfAll - 1) / kOfAll * kGrain, kLeastOneWayBytes, kFragmentBytes);
}
static_assert(kLeastOneWayBytes <= kFragmentBytes && space_of(one_way_fragment_bytes(300 << 10)) == 40 << 10);
inline constexpr std::size_t fragment_bytes(std::size_t ring_bytes) { return std::min(kFragmentBytes, ring_bytes / 4); }
// Messages up to this can go at once (Channel::most_at_once), as one fragment if no line holds them. (Broadcast to one
// rank: 4 KiB 0.18 us by an Operation and 0.11 at once, 32 KiB 0.62 and 0.57.)
inline constexpr std::size_t kMostAtOnceBytes = 32 << 10;
static_assert(kMostAtOnceBytes <= std::min(kLeastOneWayBytes, fragment_bytes(kMinRingBytes)));
// Private memory below this goes through the ring, whatever the sender's hint. From here on the peer may read it, if
// both ranks are quick at that (Lane::reads). Where one read and the other wrote to a ring, all_gather of 64 KiB by 2
// ranks of a Xeon (Cascade Lake) took 9 to 14 us, and 5.6 or 7.5 where both did the same.
// (Plain loops, a round trip: 4 KiB read 1.4 us, by a ring 1.5; 8 KiB 1.6 and 2.5.)
inline constexpr std::size_t kReadFromBytes = 8 << 10;
// Symmetric memory below this is copied (through the ring, or to where a post says), so that nobody waits for it to
// come back. The plan may say so of more (SharedCopier::sender; far_sender, if the peer's core is far).
inline constexpr std::size_t kCopyBelowBytes = 2 << 10;

enum class LineKind : std::uint16_t {
  inside,    // the whole message is in the line
  ring,      // a fragment at ring offset `at`, `bytes` long
  lent,      // the whole message lies at offset `at` of the writer's segment, until acknowledged
  readable,  // the whole message lies at address `at` - kPrivate of the writer's process, until acknowledged
  split,     // as lent, or as readable if `at` has kPrivate; and parts of it are written to where the post said (Split)
  delivered,  // the whole message has been written to where the post said
  reused,     // a fragment in the reader's ring, where the reader's line number `at` announced one, `bytes` long
};
inline constexpr bool is_in_ring(LineKind kind) { return kind == LineKind::ring || kind == LineKind::reused; }

// "Your message `number` to me may be written straight to my symmetric memory, `at` bytes into my segment; or if `at`
// has kPrivate, to that address of my process." Travels with a line of the same tag where there is one, for it is then
// seen without another miss; else in a place of its own.
struct PostedAt {
  std::uint64_t message;  // number + 1; 0: no post
  std::uint64_t at;
  std::uint64_t bytes;
};
inline constexpr std::uint64_t kPrivate = std::uint64_t{1} << 63;  // which no address of a process has, and no offset

struct alignas(64) Line {
  std::atomic<std::uint64_t>
      stamp;  // low half: line number + 1 (numbers start at kFirstLine); high half: lines of the other lane consumed
  std::uint64_t tag[2];
  // kGoesOn (line_place.h) in the top bit, the kind in the 15 bits below, bytes of the whole message in the others.
  std::atomic<std::uint64_t> kind_and_total;
  union {
    std::byte inside[kInlineBytes];
    struct {
      std::uint64_t at;
      std::uint64_t bytes;
      PostedAt post;  // of another kind than inside
    };
  };
};
static_assert(sizeof(Line) / 64 % 2 == 1);  // so that consecutive ones begin in different sets of a cache

// Lines of one lane that its reader has not acknowledged: all from number `acked` on, up to the next one, `written`.
struct Unread {
  std::uint32_t acked, written;
  std::uint32_t count() const { return written - acked; }
  bool has(std::uint32_t line) const { return line - acked < count(); }
};

inline constexpr std::uint64_t kTotalMask = (std::uint64_t{1} << 48) - 1;
inline Tag tag_of(const std::uint64_t (&word)[2]) { return Tag{{word[0], word[1]}}; }
inline LineKind kind_of(const Line& line) {
  return static_cast<LineKind>(line.kind_and_total.load(std::memory_order_relaxed) >> 48 & 0x7fff);
}
inline std::size_t total_of(const Line& line) {
  return line.kind_and_total.load(std::memory_order_relaxed) & kTotalMask;
}

struct alignas(64) Post {
  std::atomic<std::uint64_t> stamp;  // message number + 1
  std::uint64_t tag[2];
  PostedAt post;
};

// "I cannot read the message of your line `line`, of which I have `from` bytes. Show me the rest." The system may
// forbid in the middle of a job what it allowed before, and there is memory that it cannot read for others.
struct Decline {
  std::atomic<std::uint64_t> line;  // its number + 2^32; 0: none
  std::uint64_t from;
  std::atomic<std::uint32_t> taken;  // the number of the last piece that is done with
};

// Pieces of a declined message, one at a time, in the writer's symmetric memory.
struct Piece {
  std::atomic<std::uint32_t> number;  // counts the lane's pieces from 1
  std::uint64_t at, bytes;
};
inline constexpr std::uint64_t declined(std::uint32_t line) { return (std::uint64_t{1} << 32) | line; }

// A message that both ranks copy: in parts (Parts), which the owner of the lane takes from the front, and reads; and
// the writer, if it knows where the owner wants them, from the back, and writes. The place is that of the writer's
// split message number `n`, modulo kSplits. No such word is 0, as the lane is once the owner has given it back.
struct alignas(64) Split {
  std::atomic<std::uint64_t> taken;    // split_word(n, parts from the front, parts from the back), by both ranks
  std::atomic<std::uint64_t> written;  // split_word(n, 0, parts): of those from the back
};
inline constexpr std::uint32_t kSplits = 8;  // messages of the writer that have not been acknowledged, at most
inline constexpr std::uint64_t split_word(std::uint32_t number, std::uint32_t front, std::uint32_t back) {
  return std::uint64_t{number | 1u << 31} << 32 | front << 16 | back;
}

struct Lane {
  Line lines[kLines];
  alignas(64) std::atomic<std::uint32_t> ack;
  alignas(64) std::atomic<std::uint32_t> withdrawn;
  std::atomic<std::uint32_t> closed;
  std::atomic<std::uint32_t> reads;
  std::atomic<std::uint32_t> writes;
  alignas(64) Decline decline;
  alignas(64) Piece piece;
  Post posts[kPosts];
  Split splits[kSplits];
  alignas(4096) std::byte ring[kMaxRingBytes];  // of it there are lane_bytes()
};
inline constexpr std::size_t kLaneHeadBytes = offsetof(Lane, ring);  // claimed when made; the ring when first used
inline constexpr std::size_t lane_bytes(std::size_t ring_bytes) { return kLaneHeadBytes + ring_bytes; }

}  // namespace tutti::internal::shm
