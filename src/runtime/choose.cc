#include "runtime/choose.h"

#include <algorithm>
#include <array>
#include <limits>

namespace tutti::runtime {
namespace {

constexpr int kAnyRanks = std::numeric_limits<int>::max();
constexpr std::size_t kAnyBytes = std::numeric_limits<std::size_t>::max();
constexpr std::size_t kKiB = 1024;
constexpr std::size_t kChunkBytes = 128 * kKiB;  // a piece that stays in a core's L2 with its destination
// two_shot's pieces stay in the caches all ranks' inputs and outputs together, and in the kernel's on their way: over
// TCP 16 MiB took 10.8 ms in one piece, 6.7 in pieces of 1 MiB, 7.7 of 512 KiB, 8.5 of 256 KiB.
constexpr std::size_t kTwoShotChunkBytes = 1024 * kKiB;
constexpr std::size_t kFragmentBytes = 64 * kKiB;  // of a slice: what one pass writes to all peers' rings
constexpr int kMostChunks = 128;

using enum Collective;
using enum Algorithm;

// All entries keep the canonical order, so no choice here can change a result.
constexpr std::array kRules{
    Rule{all_reduce, 8, true, 2 * kKiB, one_shot},
    Rule{all_reduce, kAnyRanks, true, 2 * kKiB, recursive_doubling},
    Rule{all_reduce, 32, true, kAnyBytes, two_shot},
    Rule{all_reduce, 2, false, 4 * kKiB, one_shot},
    Rule{all_reduce, kAnyRanks, false, 64 * kKiB, recursive_doubling},
    Rule{all_reduce, 16, false, kAnyBytes, two_shot},
    Rule{all_reduce, kAnyRanks, false, kAnyBytes, sliced_tree},
    Rule{reduce_scatter, 32, false, kAnyBytes, one_shot},
    Rule{reduce_scatter, kAnyRanks, false, kAnyBytes, sliced_tree},
    Rule{all_gather, 32, false, kAnyBytes, one_shot},
    Rule{all_gather, kAnyRanks, false, kAnyBytes, ring},
    Rule{broadcast, kAnyRanks, false, 64 * kKiB, binomial_tree},
    Rule{broadcast, kAnyRanks, false, kAnyBytes, chain},
    Rule{barrier, kAnyRanks, false, kAnyBytes, dissemination},
};

}  // namespace

std::span<const Rule> rules() { return kRules; }

Algorithm choose(Collective collective, int ranks, int hosts, std::size_t bytes) {
  for (const Rule& rule : kRules)
    if (rule.collective == collective && ranks <= rule.max_ranks && (hosts == 1 || !rule.one_host) &&
        bytes <= rule.max_bytes)
      return rule.algorithm;
  return automatic;
}

int chunks_for(Collective collective, Algorithm algorithm, int ranks, std::size_t bytes) {
  const std::size_t chunk_bytes = algorithm == two_shot                               ? kTwoShotChunkBytes
                                  : collective == all_gather && algorithm == one_shot ? ranks * kFragmentBytes
                                                                                      : kChunkBytes;
  return static_cast<int>(std::clamp<std::size_t>(bytes / chunk_bytes, 1, kMostChunks));
}

}  // namespace tutti::runtime
