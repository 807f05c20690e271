#include "collectives/held_by_hosts.h"

#include <algorithm>
#include <array>

namespace tutti::internal {
namespace {

constexpr int kNever = 1 << 20;  // crossings: more than there are nodes

std::array<Node, 2> children(Node node) { return {Node{node.lo, node.split()}, Node{node.split(), node.hi}}; }

// Finds a holder for each part of T, slice by slice.
class Holders {
 public:
  Holders(const Layout& layout, const Carriers& carriers)
      : layout_(layout), carriers_(carriers), sent_(layout.ranks(), 0) {}

  HeldTree hold_slice(int slice, const std::vector<int>& host) {
    std::vector<int> holder(host.size());
    const Node root{0, layout_.leaves()};
    const int owner_host = carriers_host(slice);
    assign(slice, root, host[root.index()] == owner_host ? slice : hold_part(slice, root, host), host, holder);
    return hold(layout_, slice, slice, [&](Node node, int, int) { return holder[node.index()]; });
  }

 private:
  int carriers_host(int slice) const {
    const std::vector<int>& carriers = carriers_[slice];
    return static_cast<int>(std::find(carriers.begin(), carriers.end(), slice) - carriers.begin());
  }

  void assign(int slice, Node node, int here, const std::vector<int>& host, std::vector<int>& holder) {
    holder[node.index()] = here;
    if (node.is_leaf()) return;
    for (const Node& child : children(node))
      assign(slice, child, host[child.index()] == host[node.index()] ? here : hold_part(slice, child, host), host,
             holder);
  }

  // The rank that holds the part with `top`, whose value it sends to another host.
  int hold_part(int slice, Node top, const std::vector<int>& host) {
    std::vector<int> ranks;
    ranks_of_part(top, host, ranks);
    const int carrier = carriers_[slice][host[top.index()]];
    const int found =
        *std::ranges::min_element(ranks, {}, [&](int rank) { return std::pair(sent_[rank], rank != carrier); });
    ++sent_[found];
    return found;
  }

  void ranks_of_part(Node node, const std::vector<int>& host, std::vector<int>& ranks) const {
    if (node.is_leaf()) return ranks.push_back(layout_.rank_of_leaf(node.lo));
    for (const Node& child : children(node))
      if (host[child.index()] == host[node.index()]) ranks_of_part(child, host, ranks);
  }

  const Layout& layout_;
  const Carriers& carriers_;
  std::vector<int> sent_;  // values to other hosts, by rank
};

}  // namespace

HostsOfNodes::HostsOfNodes(const Layout& layout, const Hosts& hosts)
    : layout_(layout),
      hosts_(hosts),
      crossings_(2 * layout.leaves() - 1, std::vector<int>(hosts.count(), 0)),
      fewest_(2 * layout.leaves() - 1) {
  count({0, layout.leaves()});
}

void HostsOfNodes::count(Node node) {
  std::vector<int>& here = crossings_[node.index()];
  if (node.is_leaf()) {
    std::ranges::fill(here, kNever);
    here[hosts_.of(layout_.rank_of_leaf(node.lo))] = 0;
  } else {
    for (const Node& child : children(node)) {
      count(child);
      const std::vector<int>& below = crossings_[child.index()];
      for (int host = 0; host < hosts_.count(); ++host) here[host] += std::min(below[host], fewest_[child.index()] + 1);
    }
  }
  fewest_[node.index()] = *std::ranges::min_element(here);
}

std::vector<int> HostsOfNodes::ending_on(int at) const {
  std::vector<int> host(crossings_.size());
  place({0, layout_.leaves()}, at, host);
  return host;
}

// Where it makes no difference a node goes to the host above it, so that its children's values need fewer rounds.
void HostsOfNodes::place(Node node, int above, std::vector<int>& host) const {
  const std::vector<int>& here = crossings_[node.index()];
  int found = above;
  if (here[above] > fewest_[node.index()] + 1)
    while (here[found] != fewest_[node.index()]) found = (found + 1) % hosts_.count();
  host[node.index()] = found;
  if (node.is_leaf()) return;
  for (const Node& child : children(node)) place(child, found, host);
}

std::vector<HeldTree> held_by_hosts(const Layout& layout, const Hosts& hosts, const Carriers& carriers) {
  const HostsOfNodes nodes(layout, hosts);
  std::vector<std::vector<int>> ending_on;
  for (int host = 0; host < hosts.count(); ++host) ending_on.push_back(nodes.ending_on(host));
  Holders holders(layout, carriers);
  std::vector<HeldTree> trees;
  for (int slice = 0; slice < layout.ranks(); ++slice)
    trees.push_back(holders.hold_slice(slice, ending_on[hosts.of(slice)]));
  return trees;
}

}  // namespace tutti::internal
