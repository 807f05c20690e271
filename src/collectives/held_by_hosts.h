// The canonical tree T spread over hosts: the rule of the hierarchical algorithms.
//
// A host evaluates a part of T, and each part's value crosses to another host once. Where a host's ranks make up a node
// of T, as an aligned power of two of them does, that is the one part it has; otherwise it has several.
//
//   T over 4 leaves on hosts A A B B, slice 0           T over 4 leaves on hosts A B B B, slice 0
//        A                                                   A                 B's maximal nodes are x1 and [2,4):
//      /   \        B crosses to A once                    /   \               both cross
//     A     B                                             A     B
//    / \   / \                                           / \   / \.
//   A   A B   B                                         A   B B   B
#pragma once

#include <vector>

#include "collectives/canonical_tree.h"
#include "collectives/hosts.h"

namespace tutti::internal {

// How many chunks are combined to partial results before the result of the first is waited for. With one alone a link
// of 1 Gbit/s between crowded hosts was idle a quarter of the time; from two on it was full.
inline constexpr int kChunksAhead = 4;

// The host of each node of T, by Node::index(), so that as few values cross between hosts as any way of evaluating T
// allows whose result ends on host `at`; among those ways, one of few rounds. This is Sankoff's parsimony (Sankoff,
// "Minimal mutation trees of sequences", SIAM Journal on Applied Mathematics 28(1), 1975): the fewest edges of a tree
// whose ends differ, the leaves being given.
class HostsOfNodes {
 public:
  HostsOfNodes(const Layout& layout, const Hosts& hosts);
  std::vector<int> ending_on(int at) const;

 private:
  void count(Node node);
  void place(Node node, int above, std::vector<int>& host) const;

  const Layout& layout_;
  const Hosts& hosts_;
  std::vector<std::vector<int>> crossings_;  // below a node, by the node's host
  std::vector<int> fewest_;                  // of those, by node
};

// One tree a slice, slice r being owned by rank r. The part that ends on the owner's host is held by the owner; any
// other by one of the ranks whose leaves it begins with, those taking turns, and the slice's carrier if it can be. So
// (with one leaf a rank) no rank is sent two values of one slice by the same peer, as a channel exposes one message at
// a time.
std::vector<HeldTree> held_by_hosts(const Layout& layout, const Hosts& hosts, const Carriers& carriers);

}  // namespace tutti::internal
