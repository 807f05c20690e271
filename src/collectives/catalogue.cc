#include "collectives/catalogue.h"

#include <algorithm>
#include <array>

#include "collectives/algorithms.h"

namespace tutti {
namespace {

// clang-format off
constexpr std::array kCatalogue{
    //             collective                  algorithm                       schedule                         canonical several pipelined
    AlgorithmEntry{Collective::all_reduce,     Algorithm::one_shot,            all_reduce::one_shot,            true,     true,   false,
                   "everyone sends its input to everyone, each combines all"},
    AlgorithmEntry{Collective::all_reduce,     Algorithm::two_shot,            all_reduce::two_shot,            true,     true,   false,
                   "a slice's owner combines all inputs of it, then sends the result to all"},
    AlgorithmEntry{Collective::all_reduce,     Algorithm::sliced_tree,         all_reduce::sliced_tree,         true,     true,   false,
                   "each slice goes up the canonical tree on its own balanced way, then its owner sends the result to all"},
    AlgorithmEntry{Collective::all_reduce,     Algorithm::recursive_doubling,  all_reduce::recursive_doubling,  true,     false,  false,
                   "aligned blocks of ranks exchange their values and merge, all ranks in step"},
    AlgorithmEntry{Collective::all_reduce,     Algorithm::binomial_tree,       all_reduce::binomial_tree,       true,     true,   true,
                   "up the canonical tree to rank 0 and back"},
    AlgorithmEntry{Collective::all_reduce,     Algorithm::ring,                all_reduce::ring,                false,    false,  true,
                   "each slice goes round the ring twice: combined, then copied"},
    AlgorithmEntry{Collective::reduce_scatter, Algorithm::one_shot,            reduce_scatter::one_shot,        true,     true,   false,
                   "a slice's owner combines all inputs of it"},
    AlgorithmEntry{Collective::reduce_scatter, Algorithm::sliced_tree,         reduce_scatter::sliced_tree,     true,     true,   false,
                   "each slice goes up the canonical tree on its own balanced way to its owner"},
    AlgorithmEntry{Collective::reduce_scatter, Algorithm::ring,                reduce_scatter::ring,            false,    false,  true,
                   "each slice goes round the ring once, combined on its way to its owner"},
    AlgorithmEntry{Collective::all_gather,     Algorithm::one_shot,            all_gather::one_shot,            true,     true,   false,
                   "everyone sends its slice to everyone"},
    AlgorithmEntry{Collective::all_gather,     Algorithm::ring,                all_gather::ring,                true,     true,   true,
                   "each slice goes round the ring once, copied on its way"},
    AlgorithmEntry{Collective::broadcast,      Algorithm::binomial_tree,       broadcast::binomial_tree,        true,     true,   true,
                   "every round doubles the number of ranks that have the message"},
    AlgorithmEntry{Collective::broadcast,      Algorithm::chain,               broadcast::chain,                true,     true,   true,
                   "from rank to rank, chunk behind chunk"},
    AlgorithmEntry{Collective::barrier,        Algorithm::dissemination,       barrier::dissemination,          true,     true,   false,
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
