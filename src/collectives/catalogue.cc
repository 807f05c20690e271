#include "collectives/catalogue.h"

#include <algorithm>
#include <array>

#include "collectives/algorithms.h"

namespace tutti {
namespace {

using C = Collective;
using A = Algorithm;

// clang-format off
constexpr std::array kCatalogue{
    //             collective         algorithm              schedule                        canonical, several_leaves, pipelined
    AlgorithmEntry{C::all_reduce,     A::one_shot,           all_reduce::one_shot,           true,  true,  false,
                   "everyone sends its input to everyone, each combines all"},
    AlgorithmEntry{C::all_reduce,     A::two_shot,           all_reduce::two_shot,           true,  true,  true,
                   "a slice's owner combines all inputs of it, then sends the result to all"},
    AlgorithmEntry{C::all_reduce,     A::sliced_tree,        all_reduce::sliced_tree,        true,  true,  false,
                   "each slice goes up the canonical tree on its own way, then its owner sends the result to all"},
    AlgorithmEntry{C::all_reduce,     A::recursive_doubling, all_reduce::recursive_doubling, true,  false, false,
                   "aligned blocks of ranks exchange their values and merge, all ranks in step"},
    AlgorithmEntry{C::all_reduce,     A::binomial_tree,      all_reduce::binomial_tree,      true,  true,  true,
                   "up the canonical tree to rank 0 and back"},
    AlgorithmEntry{C::all_reduce,     A::ring,               all_reduce::ring,               false, false, true,
                   "each slice goes round the ring twice: combined, then copied"},
    AlgorithmEntry{C::all_reduce,     A::hierarchical,       all_reduce::hierarchical,       true,  true,  true,
                   "each host combines what it has of each slice, hosts exchange that, results cross to each host once"},
    AlgorithmEntry{C::reduce_scatter, A::one_shot,           reduce_scatter::one_shot,       true,  true,  false,
                   "a slice's owner combines all inputs of it"},
    AlgorithmEntry{C::reduce_scatter, A::sliced_tree,        reduce_scatter::sliced_tree,    true,  true,  false,
                   "each slice goes up the canonical tree on its own balanced way to its owner"},
    AlgorithmEntry{C::reduce_scatter, A::ring,               reduce_scatter::ring,           false, false, true,
                   "each slice goes round the ring once, combined on its way to its owner"},
    AlgorithmEntry{C::reduce_scatter, A::hierarchical,       reduce_scatter::hierarchical,   true,  true,  true,
                   "each host combines what it has of each slice, and its owner what hosts send"},
    AlgorithmEntry{C::all_gather,     A::one_shot,           all_gather::one_shot,           true,  true,  false,
                   "everyone sends its slice to everyone"},
    AlgorithmEntry{C::all_gather,     A::ring,               all_gather::ring,               true,  true,  true,
                   "each slice goes round the ring once, copied on its way"},
    AlgorithmEntry{C::all_gather,     A::hierarchical,       all_gather::hierarchical,       true,  true,  true,
                   "each slice goes to each host once and is passed on there"},
    AlgorithmEntry{C::broadcast,      A::binomial_tree,      broadcast::binomial_tree,       true,  true,  true,
                   "every round doubles the number of ranks that have the message"},
    AlgorithmEntry{C::broadcast,      A::chain,              broadcast::chain,               true,  true,  true,
                   "from rank to rank, chunk behind chunk"},
    AlgorithmEntry{C::broadcast,      A::hierarchical,       broadcast::hierarchical,        true,  true,  true,
                   "slices go from host to host, carried by all ranks of a host, and are passed on there"},
    AlgorithmEntry{C::barrier,        A::dissemination,      barrier::dissemination,         true,  true,  false,
                   "in round k each rank tells the one 2^k ahead"},
};
// clang-format on

}  // namespace

std::span<const AlgorithmEntry> catalogue() { return kCatalogue; }

const AlgorithmEntry* find_algorithm(Collective collective, Algorithm algorithm) {
  const auto found = std::find_if(kCatalogue.begin(), kCatalogue.end(), [&](const AlgorithmEntry& entry) {
    return entry.collective == collective && entry.algorithm == algorithm;
  });
  return found == kCatalogue.end() ? nullptr : &*found;
}

std::vector<Schedule> build_all(const AlgorithmEntry& entry, const Layout& layout, const Message& message) {
  std::vector<Schedule> schedules;
  for (int rank = 0; rank < layout.ranks(); ++rank) schedules.push_back(entry.schedule(rank, layout, message));
  return schedules;
}

}  // namespace tutti
