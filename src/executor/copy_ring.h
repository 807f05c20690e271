// Where calls put what their peers may read after the call (Plan::leaves_copies): one behind the other in a ring. A
// call waits for the readers of the earlier calls whose places it takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "executor/peer_link.h"
#include "executor/symmetric_memory.h"

namespace tutti::internal {

class CopyRing {
 public:
  // How far a rank goes ahead that waits for nobody but readers: so many bytes, and so many calls at most. A reader
  // that shares its processor with it takes a turn for as many calls as it is ahead; longer rings leave the cache.
  // Broadcast on 2 cores of a Zen 4 that shared a cache, ordinary memory, us, with 1, 2, 4 and 8 MiB: 4 ranks 64
  // KiB 8.0, 6.6, 6.8, 7.2, 256 KiB 23, 18, 16.5, 17; 8 ranks 256 KiB 43, 41, 39, 40. An all_gather, whose ranks wait
  // for each other in any case, gains nothing: 4 ranks 1 MiB 100 with two places, 95, 100 and 103 with 1, 2 and 4 MiB;
  // 8 ranks 512 KiB 98, 101, 104 and 111.
  static constexpr std::size_t kAheadBytes = 4 << 20, kAheadCalls = 32;
  using Allocate = std::function<std::shared_ptr<SymmetricMemory>(std::size_t bytes)>;

  // Before calls of `bytes` begin, none is under way: makes room for two of them in a row, or for as many as a rank
  // that goes_ahead may be ahead. Throws what `allocate` throws.
  void fit(std::size_t bytes, bool goes_ahead, const Allocate& allocate);

  // The place of the next call, as said to fit(). Not to be written to before is_read().
  std::byte* take(std::size_t bytes, bool goes_ahead);
  // Whether all peers have read what lay there. If not: one that has not, in `reader`. Also frees what was outgrown and
  // has been read. Throws what channels throw.
  bool is_read(std::span<const PeerLink> links, int& reader);
  // The call is over, `links` count its messages, and peers may still read some in its place.
  void leave(std::span<const PeerLink> links);

  // The communicator ends: its channels keep what peers may not have read. Throws std::bad_alloc.
  void hand_to(std::span<const PeerLink> links) const;

 private:
  // How much of the ring such calls go round.
  static std::size_t length_for(std::size_t bytes, bool goes_ahead) {
    return std::max(2 * bytes, goes_ahead ? std::min(kAheadBytes, kAheadCalls * bytes) : 0);
  }

  struct Left {  // by one call
    std::size_t begin = 0, end = 0;
    std::vector<std::uint64_t> sent{};  // by rank: PeerLink::sent behind the last message that lies there

    bool overlaps(const Left& other) const { return begin < other.end && other.begin < end; }
    bool is_read(std::span<const PeerLink> links, int& reader) const;
  };
  struct Outgrown {
    std::shared_ptr<SymmetricMemory> memory;
    Left last;
  };

  std::shared_ptr<SymmetricMemory> memory_;
  Left taken_;            // by the call under way; the next one takes what is behind it
  std::list<Left> left_;  // that may not have been read, the oldest first
  std::list<Left> read_;  // to be used again: a call allocates nothing
  std::vector<Outgrown> outgrown_;
};

}  // namespace tutti::internal
