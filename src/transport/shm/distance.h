// How far the peer's core is: whether the two share a cache.
//
// A line that the peer's core has read is fetched back before it is written to. Between cores that share a cache that
// is cheap, and what is written stays where the peer finds it soon. Between cores that do not, it costs more than
// memory does: there non-temporal stores, which fetch nothing, are 2 (4 KiB) to 6 times (from 64 KiB on) as fast on an
// EPYC, and near cores lose up to 2 times with them. Which it is cannot be known beforehand, least of all in a virtual
// machine, whose cores move. So a look times how long one line takes that the peer polls or has just read. That depends
// on the distance alone, and not on how this rank has written before. Copies by `rep movsb` (Fragments::by_string) need
// no look. A SharedCopier::far_sender looks in any case, to know who copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tutti::internal::shm {

class Distance {
 public:
  bool is_far() const { return slowness_ >= kFar; }

  // Before `bytes` are written to the peer. Looks once in a while, and then fetches `line`, unchanged.
  void look(std::atomic<std::uint64_t>& line, std::size_t bytes) {
    unlooked_bytes_ += bytes;
    if (unlooked_bytes_ >= kBetweenLooks) fetch(line);
  }

  // A line took so long.
  void judge(std::int64_t ns);

 private:
  static constexpr std::size_t kBetweenLooks = 128 << 10;  // then looks cost far cores 2 parts in 100
  // A single interruption does not decide. Between far cores a line that the peer has not read since comes at once, so
  // a slow one counts for two quick ones.
  static constexpr int kSlow = 2, kFar = 5, kMax = 10;

  void fetch(std::atomic<std::uint64_t>& line);

  int slowness_ = 0;  // [0, kMax]
  std::size_t unlooked_bytes_ = 0;
};

}  // namespace tutti::internal::shm
