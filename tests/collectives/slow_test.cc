// Every algorithm of the catalogue is proven for every number of ranks up to 64, every root and 1, 2 and 5 chunks. Of
// more than 32 ranks only `tools/check --all` tries every root; four otherwise.
#include <numeric>
#include <vector>

#include "collectives/sweep.h"

namespace tutti::internal {
namespace {

// A case an algorithm, so that processors share them.
class Catalogue : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Every, Catalogue, testing::Range(std::size_t{0}, catalogue().size()), [](const auto& it) {
  const AlgorithmEntry& entry = catalogue()[it.param];
  return std::string(to_string(entry.collective)) + "_" + std::string(to_string(entry.algorithm));
});

std::vector<int> roots_of(const AlgorithmEntry& entry, int n) {
  if (entry.collective != Collective::broadcast) return {0};
  if (!TUTTI_EVERY_ROOT && n > 32) return {0, 1, n / 2, n - 1};
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST_P(Catalogue, IsProvenForEveryNumberOfRanksRootAndNumberOfChunks) {
  const AlgorithmEntry& entry = catalogue()[GetParam()];
  for (int n = 1; n <= kMaxRanks; ++n)
    for (const int root : roots_of(entry, n))
      for (int chunks : chunks_of(entry)) expect_proof(entry, Layout::of(n), {.root = root, .chunks = chunks});
}

}  // namespace
}  // namespace tutti::internal
