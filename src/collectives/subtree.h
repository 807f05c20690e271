// A binomial tree with any root whose subtrees are consecutive ranks, so that the rows of a subtree lie side by side in
// the root's buffer.
//
// The ranks [lo, hi) are split where the canonical tree T splits them. The part that the root is not in is the subtree
// of its first rank, a child of the root; the other part is split again, and so is each subtree. Where each host holds
// an aligned power of two of consecutive ranks, one message crosses from or to each.
//
//   root 0                    root 2              the ranks of each subtree stand beside its root
//   0 [0,4)                   2 [0,4)
//   |  \                      |  \.
//   |   2 [2,4)               |   0 [0,2)
//   |    \                    |    \.
//   1     3                   3     1
#pragma once

#include <vector>

namespace tutti::internal {

struct Subtree {
  int root = 0;
  int begin = 0, end = 0;  // the ranks [begin, end)
  int size() const { return end - begin; }
};

// A rank's place in the tree of n ranks.
struct Branch {
  int parent = -1;                // of the root: -1
  Subtree own;                    // of which the rank is the root
  std::vector<Subtree> children;  // the largest first: it has the longest way to go
};
Branch branch_of(int rank, int n, int root);

}  // namespace tutti::internal
