// Up a binomial tree: every rank gets the slices of its children's subtrees, each in one message, and sends them on
// with its own in one. A subtree is of consecutive ranks, whatever the root is, so its slices lie side by side at the
// root.
//
//         0               root 0                    message of rank 1: slice 1
//    2, 3 ^  ^ 1                                    message of rank 2: slices 2 and 3
//        /    \.                                    message of rank 3: slice 3
//       2      1
//     3 ^
//       |
//       3
//
// Time: at most log n alpha + (n-1)/n M beta, at the root; a slice of n = 2^k ranks is sent up to log n times
// Restrictions: rows of one length. Ranks between the root and the leaves of the tree keep the rows of their subtree.
// Source: the binomial tree gather of Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations
// in MPICH", IJHPCA 19(1), 2005, section 3. There, for a root other than 0, ranks are renumbered, and rows are copied.
#include "collectives/algorithms.h"
#include "collectives/regions.h"
#include "collectives/subtree.h"
#include "schedule/builder.h"

namespace tutti::internal {

const AlgorithmClaims algorithms::gather::binomial_tree_claims{
    .idea = "slices go up a tree, those of a subtree in one message",
    .canonical = true,
    .several_leaves = true,
    .pipelined = false,
    .joins_rows = true,
    .messages = "n-1",
    .bytes = "at most (n-1)/n M",
    .rounds = "at most log n",
};

Schedule algorithms::gather::binomial_tree(int rank, const Layout& layout, const Message& message) {
  const Branch branch = branch_of(rank, layout.ranks(), message.root);
  const bool is_root = rank == message.root, is_leaf = branch.own.size() == 1;
  Builder builder(rank, layout.ranks(), 1, true);
  const int rows = is_root || is_leaf ? 0 : builder.new_scratch_rows(branch.own.size());
  const auto place = [&](int slice) { return is_root ? output(slice) : relay(rows + slice - branch.own.begin, slice); };
  for (const Subtree& child : branch.children) builder.receive(child.root, up_to(place(child.begin), child.end));
  if (is_root || !is_leaf) builder.copy(input(rank), place(rank));
  if (!is_root) builder.send(branch.parent, is_leaf ? input(rank) : up_to(place(branch.own.begin), branch.own.end));
  return std::move(builder).build();
}

}  // namespace tutti::internal
