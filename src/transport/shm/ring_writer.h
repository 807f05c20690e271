// Copies into a ring that the peer reads, past the cache where the peer's core is far.
//
// A line that the peer's core has read is fetched back before it is written to. Between cores that share a cache that
// is cheap, and what is written stays where the peer finds it soon. Between cores that do not, it costs more than
// memory does: there non-temporal stores, which fetch nothing, are three times as fast (2 ranks, own buffers, 256 KiB:
// 160 us with plain stores, 47 with these; near cores 20 and 53). Which it is cannot be known beforehand, least of all
// in a virtual machine, whose cores move: so plain copies are timed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tutti::internal::shm {

class RingWriter {
 public:
  // to[0, bytes) = from[0, bytes); `to` is aligned to a cache line.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes);

  // Whether `bytes` are better made elsewhere and copied here than made here: because the copy goes past the cache, or
  // because it is time to time one.
  bool prefers_copy(std::size_t bytes) {
    return passes_cache(bytes) || (bytes >= kMinBytes && ++untimed_ % kBetweenProbes == 0);
  }

  // Whether a copy of `bytes` would go past the cache now.
  bool passes_cache(std::size_t bytes) const { return bytes >= kMinBytes && slowness_ >= kFar; }

  // A plain copy of `bytes` took so long.
  void judge(std::size_t bytes, std::int64_t ns);

 private:
  static constexpr std::size_t kMinBytes = 16 << 10;  // less is sooner there through the cache, however far
  static constexpr int kFar = 4, kMax = 8;            // a single interruption does not decide
  static constexpr int kBetweenProbes = 16;           // copies past the cache that say nothing

  int slowness_ = 0;      // [0, kMax]
  int unproven_ = 0;      // copies past the cache since the last plain one
  unsigned untimed_ = 0;  // what was made in the ring
  std::size_t warm_bytes_ = 0;
};

}  // namespace tutti::internal::shm
