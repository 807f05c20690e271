#include "trainer/sampler.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace tutti::trainer {

Range shard(std::size_t points, int rank, int ranks) {
  const auto n = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  const std::size_t each = points / n, longer = points % n;  // the first `longer` shards hold one more
  const std::size_t first = r * each + std::min(r, longer);
  return {first, first + each + (r < longer ? 1 : 0)};
}

Sampler::Sampler(std::size_t points, std::size_t batch, std::uint64_t seed)
    : order_(points), batch_(batch), random_(seed) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  shuffle();
}

// Fisher and Yates; not std::shuffle, whose result the standard leaves open.
void Sampler::shuffle() {
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random_() % i]);
}

std::span<const std::size_t> Sampler::next() {
  if (used_ == order_.size()) {
    shuffle();
    used_ = 0;
  }
  const std::size_t count = std::min(batch_, order_.size() - used_);
  return std::span<const std::size_t>(order_).subspan(std::exchange(used_, used_ + count), count);
}

}  // namespace tutti::trainer
