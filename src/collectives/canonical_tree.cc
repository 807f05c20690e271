#include "collectives/canonical_tree.h"

#include <algorithm>
#include <limits>

#include "collectives/regions.h"
#include "collectives/requirements.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

int hold_node(const Layout& layout, Node node, const HolderRule& rule, std::vector<int>& holder) {
  int& here = holder[node.index()];
  if (node.is_leaf()) return here = layout.rank_of_leaf(node.lo);
  const int left = hold_node(layout, {node.lo, node.split()}, rule, holder);
  const int right = hold_node(layout, {node.split(), node.hi}, rule, holder);
  return here = left == right ? left : rule(node, left, right);
}

constexpr int kLastRound = std::numeric_limits<int>::max();

}  // namespace

HeldTree hold(const Layout& layout, int slice, int owner, const HolderRule& rule) {
  HeldTree tree{slice, owner, std::vector<int>(2 * layout.leaves() - 1)};
  hold_node(layout, {0, layout.leaves()}, rule, tree.holder);
  return tree;
}

std::vector<HeldTree> held_by_owners(const Layout& layout) {
  std::vector<HeldTree> trees;
  for (int owner = 0; owner < layout.ranks(); ++owner)
    trees.push_back(hold(layout, owner, owner, [owner](Node, int, int) { return owner; }));
  return trees;
}

std::vector<HeldTree> held_in_balance(const Layout& layout) {
  std::vector<int> received(layout.ranks(), 0);
  std::vector<HeldTree> trees;
  for (int owner = 0; owner < layout.ranks(); ++owner)
    trees.push_back(hold(layout, owner, owner, [&](Node, int left, int right) {
      int holder = received[right] < received[left] ? right : left;
      if (left == owner || right == owner) holder = owner;
      ++received[holder];
      return holder;
    }));
  return trees;
}

CanonicalReduction::CanonicalReduction(Builder& builder, const Layout& layout, int rank,
                                       const std::vector<HeldTree>& trees, bool copies_inputs)
    : builder_(builder),
      layout_(layout),
      rank_(rank),
      copies_(builder, copies_inputs),
      for_partials_(layout.ranks()),
      for_results_(layout.ranks()),
      outgoing_(layout.ranks()) {
  std::vector<Task> tasks;
  for (const HeldTree& tree : trees) {
    Task result{tree.slice, {0, layout.leaves()}, tree.owner};
    gather(tree, result.node, result, tasks);
    result.round = kLastRound;
    tasks.push_back(std::move(result));
  }
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.round < b.round; });
  for (Task& task : tasks) {
    if (task.holder != rank) {
      plan_sends(task);
    } else if (task.round == kLastRound) {
      result_ = std::move(task);
    } else if (partial_of_.try_emplace({task.slice, task.node.index()}, partials_.size()).second) {
      partials_.push_back(std::move(task));  // once, though several owners of one slice may ask for it
    }
  }
  if (partials_.size() > static_cast<std::size_t>(kMaxRegions))
    throw Error(ErrorCode::invalid_argument,
                "rank " + std::to_string(rank) + ": this layout needs " + std::to_string(partials_.size()) +
                    " partial results at a time; a schedule holds at most " + std::to_string(kMaxRegions));
  for (Task& task : partials_) task.row = builder.new_scratch_row();
}

// Adds to `task` what its holder needs for `node`, and to `tasks` what others do for it; leaves out what this rank has
// no part in. Returns the round after which the value of `node` is there.
int CanonicalReduction::gather(const HeldTree& tree, Node node, Task& task, std::vector<Task>& tasks) const {
  const int holder = tree.holder[node.index()];
  if (holder == task.holder && !node.is_leaf()) {
    const int left = gather(tree, {node.lo, node.split()}, task, tasks);
    return std::max(left, gather(tree, {node.split(), node.hi}, task, tasks));
  }
  if (holder == rank_ || task.holder == rank_) task.parts.push_back({node, holder});
  if (holder == task.holder) return 0;
  if (node.is_leaf()) return 1;
  Task partial{tree.slice, node, holder};
  partial.round = gather(tree, node, partial, tasks);
  const int round = partial.round;
  if (!partial.parts.empty()) tasks.push_back(std::move(partial));
  return round + 1;
}

void CanonicalReduction::plan_sends(const Task& task) {
  const int distance = (task.holder - rank_ + layout_.ranks()) % layout_.ranks();
  Parts& parts = task.round == kLastRound ? for_results_ : for_partials_;
  for (const Part& part : task.parts)
    if (part.holder == rank_) parts[distance].push_back({task.slice, part.node});
}

Region CanonicalReduction::region(int slice, Node node, int chunk) const {
  if (node.is_leaf()) return region_of(Space::input, node.lo - layout_.first_leaf[rank_], slice, chunk);
  return scratch(partials_[partial_of_.at({slice, node.index()})].row, slice, chunk);
}

void CanonicalReduction::combine_partials(int chunk) {
  offer(for_partials_, chunk);
  offer(for_results_, chunk);
  combine_partials_of(chunk);
}

void CanonicalReduction::combine_partials_ahead(int chunk, int chunks, int ahead) {
  for (int first = 0; chunk == 0 && first < std::min(ahead, chunks); ++first) offer(for_partials_, first);
  combine_partials_of(chunk);
  if (chunk + ahead < chunks) offer(for_partials_, chunk + ahead);
  offer(for_results_, chunk);
  send_what_is_ready();
}

void CanonicalReduction::combine_partials_of(int chunk) {
  send_what_is_ready();
  for (const Task& partial : partials_) {
    combine(partial, region(partial.slice, partial.node, chunk), false);
    ++combined_;
    send_what_is_ready();
  }
}

void CanonicalReduction::offer(const Parts& parts, int chunk) {
  for (std::size_t distance = 1; distance < parts.size(); ++distance)
    for (const auto& [slice, node] : parts[distance]) {
      const std::size_t after =
          node.is_leaf() ? 0 : chunk * partials_.size() + partial_of_.at({slice, node.index()}) + 1;
      outgoing_[distance].push_back({region(slice, node, chunk), after});
    }
}

void CanonicalReduction::send(int peer, Region from) {
  outgoing_[(peer - rank_ + layout_.ranks()) % layout_.ranks()].push_back({from, 0});
  send_what_is_ready();
}

void CanonicalReduction::send_what_is_ready() {
  for (std::size_t distance = 1; distance < outgoing_.size(); ++distance) {
    std::deque<Outgoing>& queue = outgoing_[distance];
    for (; !queue.empty() && queue.front().after <= combined_; queue.pop_front()) {
      const Region& from = queue.front().region;
      const int peer = (rank_ + static_cast<int>(distance)) % layout_.ranks();
      const bool copies = from.space == Space::input && layout_.host[peer] == layout_.host[rank_];
      builder_.send(peer, copies ? copies_.of(from) : from);
    }
  }
}

void CanonicalReduction::combine_result(Region to, bool finish) { combine(result_.value(), to, finish); }

void CanonicalReduction::combine(const Task& task, Region to, bool finish) {
  std::vector<int> bounds{task.node.lo};
  std::vector<Source> sources;
  for (const Part& part : task.parts) {
    bounds.push_back(part.node.hi);
    sources.push_back(part.holder == rank_
                          ? Builder::local(region(task.slice, part.node, to.chunk))
                          : Builder::message(part.holder, input(task.slice, to.chunk), !part.node.is_leaf()));
  }
  const std::vector<std::uint8_t> joins = canonical_joins(bounds);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i].joins = joins[i];
  builder_.reduce(std::move(sources), to, finish);
}

}  // namespace tutti::internal
