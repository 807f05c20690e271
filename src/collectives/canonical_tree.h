// The canonical tree T spread over ranks. Every algorithm that combines inputs along T is one rule, "who holds a node",
// and the messages follow: a node's holder knows its value, so where parent and child have different holders the child
// is sent.
//
//   T over 4 leaves        held by leaf 0, 2, ...     held by rank 3        A holder combines all that it holds in one
//        *                        0                        3              pass: on the left rank 0 computes
//      /   \                    /   \                    / | | \          ((x0 x1) m), x1 and m being messages.
//     *     *                  0     2                  /  | |  \.
//    / \   / \                / \   / \                /  /   \  \.
//   0   1 2   3              0   1 2   3              0  1     2  3
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "collectives/one_copy.h"
#include "schedule/builder.h"
#include "schedule/layout.h"

namespace tutti::internal {

// A node of T: the leaves [lo, hi).
struct Node {
  int lo = 0;
  int hi = 0;
  bool is_leaf() const { return hi - lo == 1; }
  int split() const { return canonical_split(lo, hi); }  // the children are [lo, split()) and [split(), hi)
  // All nodes of T from left to right: 0 .. 2 * leaves - 2.
  int index() const { return is_leaf() ? 2 * lo : 2 * split() - 1; }
};

// One slice's way through T: `owner` takes the result, holder[node.index()] is the rank that holds a node. A node whose
// children are held by one rank is held by it too; so is therefore every node whose leaves all lie on one rank.
struct HeldTree {
  int slice = 0;
  int owner = 0;
  std::vector<int> holder;
};

// The rule: who holds a node whose children are held by the different ranks `left` and `right`.
using HolderRule = std::function<int(Node node, int left, int right)>;
HeldTree hold(const Layout& layout, int slice, int owner, const HolderRule& rule);

// The usual rules, for as many slices as there are ranks, slice r being owned by rank r.
std::vector<HeldTree> held_by_owners(const Layout& layout);   // the owner combines everything itself
std::vector<HeldTree> held_in_balance(const Layout& layout);  // sliced_tree's: see all_reduce/sliced_tree.cc

// One rank's steps in evaluating some trees. Messages between two ranks are sent in the order in which they are
// consumed, as soon as they are there; all trees advance together, round by round.
class CanonicalReduction {
 public:
  // At most one tree may be owned by `rank`. Throws Error{invalid_argument} when more than kMaxRegions scratch rows
  // are needed.
  // copies_inputs: as of Message.
  CanonicalReduction(Builder& builder, const Layout& layout, int rank, const std::vector<HeldTree>& trees,
                     bool copies_inputs = false);

  // All that the rank does for other owners: combines what it holds, blocking until it has the parts, and gives it
  // away.
  void combine_partials(int chunk = 0);

  // The same for chunk 0, 1, ... of `chunks` in turn where every rank combines the result of a chunk behind the
  // partials of the `ahead`-th after it: so that many can be on their way while the next is combined.
  void combine_partials_ahead(int chunk, int chunks, int ahead);

  // Blocks until all that the owner needs is here, and stores the result in `to`.
  void combine_result(Region to, bool finish);

  // Sends as soon as all that is to be sent to `peer` before is out.
  void send(int peer, Region from);

 private:
  struct Part {
    Node node;
    int holder;
  };
  struct Task {  // `holder` combines `parts` to `node`; all messages it needs are there after `round` rounds
    int slice;
    Node node;
    int holder;
    int round = 0;
    std::vector<Part> parts;  // of another holder's task: only those that this rank holds
    int row = 0;              // of scratch, where this rank keeps the partial result
  };
  using Key = std::pair<int, int>;  // slice and Node::index()
  // Slice and node, as the peer consumes them; by the peer's distance from this rank.
  using Parts = std::vector<std::vector<std::pair<int, Node>>>;
  struct Outgoing {
    Region region;
    std::size_t after;  // it is there once so many partials have been combined, of all chunks together
  };

  int gather(const HeldTree& tree, Node node, Task& task, std::vector<Task>& tasks) const;
  void plan_sends(const Task& task);
  void offer(const Parts& parts, int chunk);
  void send_what_is_ready();
  void combine_partials_of(int chunk);
  void combine(const Task& task, Region to, bool finish);
  Region region(int slice, Node node, int chunk) const;

  Builder& builder_;
  const Layout& layout_;
  int rank_;
  OneCopy copies_;                              // of inputs
  std::vector<Task> partials_;                  // this rank's, in order
  std::optional<Task> result_;                  // this rank's
  std::map<Key, std::size_t> partial_of_;       // index in partials_
  Parts for_partials_, for_results_;            // what others' partials and results need of this rank
  std::vector<std::deque<Outgoing>> outgoing_;  // by distance
  std::size_t combined_ = 0;                    // partials, of all chunks together
};

}  // namespace tutti::internal
