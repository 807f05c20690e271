// Which points a rank computes with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

namespace tutti::trainer {

// The points [first, last).
struct Range {
  std::size_t first;
  std::size_t last;
  std::size_t size() const { return last - first; }
};

// Rank `rank`'s share of `points`: contiguous, sizes differ by one at most, empty where there are fewer points than
// ranks.
Range shard(std::size_t points, int rank, int ranks);

// Mini-batches without replacement: each pass over [0, points) is shuffled anew, and its last batch may be short. The
// same seed gives the same batches on every rank, whatever the number of ranks.
class Sampler {
 public:
  Sampler(std::size_t points, std::size_t batch, std::uint64_t seed);

  // The indices of the next batch; valid until the next call.
  std::span<const std::size_t> next();

 private:
  void shuffle();

  std::vector<std::size_t> order_;
  std::size_t batch_;
  std::size_t used_ = 0;
  std::mt19937_64 random_;
};

}  // namespace tutti::trainer
