#include "collectives/spread.h"

#include "collectives/regions.h"

namespace tutti::internal {

Spread::Spread(Builder& builder, const Hosts& hosts, const Carriers& carriers, int rank, Send send)
    : builder_(builder),
      hosts_(hosts),
      carriers_(carriers),
      rank_(rank),
      send_(std::move(send)),
      neighbours_(hosts.neighbours(rank)) {}

// Other hosts first: they have the longer way.
void Spread::send_own(Region own) {
  for (int host : hosts_.others(rank_)) send_(carriers_[rank_][host], own);
  for (int neighbour : neighbours_) send_(neighbour, own);
}

void Spread::receive_from_owners(int chunk) {
  const int host = hosts_.of(rank_);
  for (int neighbour : neighbours_) builder_.receive(neighbour, output(neighbour, chunk));
  for (int slice = 0; slice < static_cast<int>(carriers_.size()); ++slice)
    if (hosts_.of(slice) != host && carriers_[slice][host] == rank_) builder_.receive(slice, output(slice, chunk));
}

void Spread::pass_on(int chunk) {
  const int host = hosts_.of(rank_);
  for (int slice = 0; slice < static_cast<int>(carriers_.size()); ++slice)
    if (hosts_.of(slice) != host && carriers_[slice][host] == rank_)
      for (int neighbour : neighbours_) send_(neighbour, output(slice, chunk));
}

void Spread::receive_from_carriers(int chunk) {
  const int host = hosts_.of(rank_);
  for (int slice = 0; slice < static_cast<int>(carriers_.size()); ++slice)
    if (hosts_.of(slice) != host && carriers_[slice][host] != rank_)
      builder_.receive(carriers_[slice][host], output(slice, chunk));
}

}  // namespace tutti::internal
