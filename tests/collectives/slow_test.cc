// Every algorithm of the catalogue is proven for every number of ranks up to 64, every root and 1, 2 and 5 chunks.
#include "collectives/sweep.h"

namespace tutti::internal {
namespace {

// A case an algorithm, so that processors share them.
class Catalogue : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Every, Catalogue, testing::Range(std::size_t{0}, catalogue().size()), [](const auto& it) {
  const AlgorithmEntry& entry = catalogue()[it.param];
  return std::string(to_string(entry.collective)) + "_" + std::string(to_string(entry.algorithm));
});

TEST_P(Catalogue, IsProvenForEveryNumberOfRanksRootAndNumberOfChunks) {
  const AlgorithmEntry& entry = catalogue()[GetParam()];
  for (int n = 1; n <= kMaxRanks; ++n)
    for (int root = 0; root < (entry.collective == Collective::broadcast ? n : 1); ++root)
      for (int chunks : chunks_of(entry)) expect_proof(entry, Layout::of(n), {.root = root, .chunks = chunks});
}

}  // namespace
}  // namespace tutti::internal
