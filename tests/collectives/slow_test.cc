// Every algorithm of the catalogue is proven for every number of ranks up to 64, every root and 1, 2 and 5 chunks.
#include "collectives/sweep.h"

namespace tutti {
namespace {

TEST(Catalogue, IsProvenForEveryNumberOfRanksRootAndNumberOfChunks) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= kMostRanks; ++n)
      for (int root = 0; root < (entry.collective == Collective::broadcast ? n : 1); ++root)
        for (int chunks : chunks_of(entry)) expect_proof(entry, Layout::of(n), {.root = root, .chunks = chunks});
}

}  // namespace
}  // namespace tutti
