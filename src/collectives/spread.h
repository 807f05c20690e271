// Each slice from its owner to everyone, once between any two hosts: the second half of all_reduce/hierarchical and all
// of all_gather/hierarchical.
//
//   hosts 0 1 | 2 3, slice 0:    0 --> 2      the owner sends it to its neighbours and to each other host's carrier,
//                                |     |      and a carrier passes it on to its own neighbours
//                                v     v
//                                1     3
#pragma once

#include <functional>

#include "collectives/hosts.h"
#include "schedule/builder.h"

namespace tutti::internal {

// One rank's steps. Whoever calls them sees to it that between two ranks messages are received in the order in which
// they are sent: of one chunk send_own() goes with receive_from_owners(), pass_on() with receive_from_carriers().
class Spread {
 public:
  using Send = std::function<void(int peer, Region from)>;

  Spread(Builder& builder, const Hosts& hosts, const Carriers& carriers, int rank, Send send);

  void send_own(Region own);  // a chunk of this rank's slice, wherever it lies
  void receive_from_owners(int chunk);
  void pass_on(int chunk);
  void receive_from_carriers(int chunk);

 private:
  Builder& builder_;
  const Hosts& hosts_;
  const Carriers& carriers_;
  int rank_;
  Send send_;
  std::vector<int> neighbours_;
};

}  // namespace tutti::internal
