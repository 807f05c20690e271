// A few algorithms written out by hand, small enough to be seen right, for the tests of the verifier and the
// interpreter.
#pragma once

#include <string>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"
#include "schedule/verify.h"

namespace tutti::internal {

struct Example {
  std::string name;
  Layout layout;
  Goal goal;
  std::vector<Schedule> schedules;
};

Example ring(int ranks);                             // all_reduce, order any, two rows of scratch in turn
Example two_shot(const Layout& layout, int chunks);  // all_reduce, canonical, several leaves a rank
Example recursive_doubling(int ranks);         // all_reduce, canonical, powers of two, two rows of scratch in turn
Example binomial_tree(int ranks, int chunks);  // all_reduce, canonical, pipelined, one row of scratch
Example direct_reduce_scatter(int ranks);      // canonical
Example ring_all_gather(int ranks);
Example chain_broadcast(int ranks, int root, int chunks);
Example dissemination(int ranks);  // barrier
// Messages of several rows, of relay and of the output: down a chain to rank 0, and there and back.
Example chain_gather(int ranks);
Example chain_all_gather(int ranks);

// Layouts with several leaves: ranks hold the given numbers of consecutive leaves.
Layout layout_of_leaves(const std::vector<int>& leaves);

// All of the above at some sizes, for sweeps.
std::vector<Example> examples(int ranks);

}  // namespace tutti::internal
