#include "schedule/examples.h"

#include "schedule/builder.h"

namespace tutti::internal {
namespace {

Region in(int slice, int chunk = 0, int row = 0) {
  return {Space::input, static_cast<std::uint16_t>(row), static_cast<std::uint32_t>(slice),
          static_cast<std::uint16_t>(chunk)};
}
Region out(int slice, int chunk = 0) {
  return {Space::output, 0, static_cast<std::uint32_t>(slice), static_cast<std::uint16_t>(chunk)};
}
Region scratch(int row, int slice, int chunk = 0) {
  return {Space::scratch, static_cast<std::uint16_t>(row), static_cast<std::uint32_t>(slice),
          static_cast<std::uint16_t>(chunk)};
}

std::vector<Source> with_joins(std::vector<Source> sources, const std::vector<int>& bounds) {
  const std::vector<std::uint8_t> joins = canonical_joins(bounds);
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i].joins = joins[i];
  return sources;
}

// Ends of the maximal canonical subtrees of [lo, hi) that lie inside [from, to).
void subtree_ends(int lo, int hi, int from, int to, std::vector<int>& ends) {
  if (hi <= from || to <= lo) return;
  if (from <= lo && hi <= to) {
    ends.push_back(hi);
    return;
  }
  const int m = canonical_split(lo, hi);
  subtree_ends(lo, m, from, to, ends);
  subtree_ends(m, hi, from, to, ends);
}

std::vector<int> subtree_bounds(const Layout& layout, int rank) {
  std::vector<int> bounds = {layout.first_leaf[rank]};
  if (layout.leaves_of(rank) > 0)
    subtree_ends(0, layout.leaves(), layout.first_leaf[rank], layout.first_leaf[rank + 1], bounds);
  return bounds;
}

// One rank's nodes of one chunk: single leaves lie in the input, larger ones are combined into a row of scratch each.
std::vector<Region> combine_own_leaves(Builder& builder, const Layout& layout, int rank, int slice, int chunk) {
  std::vector<Region> nodes;
  const std::vector<int> bounds = subtree_bounds(layout, rank);
  for (std::size_t node = 0; node + 1 < bounds.size(); ++node) {
    std::vector<Source> sources;
    std::vector<int> leaves = {bounds[node]};
    for (int leaf = bounds[node]; leaf < bounds[node + 1]; ++leaf) {
      sources.push_back(Builder::local(in(slice, chunk, leaf - layout.first_leaf[rank])));
      leaves.push_back(leaf + 1);
    }
    Region region = sources[0].region;
    if (sources.size() > 1) {
      region = scratch(builder.new_scratch_row(), slice, chunk);
      builder.reduce(with_joins(sources, leaves), region);
    }
    nodes.push_back(region);
  }
  return nodes;
}

}  // namespace

Layout layout_of_leaves(const std::vector<int>& leaves) {
  Layout layout = Layout::of(static_cast<int>(leaves.size()));
  for (std::size_t rank = 0; rank < leaves.size(); ++rank)
    layout.first_leaf[rank + 1] = layout.first_leaf[rank] + leaves[rank];
  return layout;
}

Example ring(int n) {
  Example example{"ring", Layout::of(n), {Collective::all_reduce, 0, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n);
    const int next = (rank + 1) % n, previous = (rank + n - 1) % n;
    const auto slice_at = [&](int step) { return ((rank - step) % n + n) % n; };
    const int rows[] = {builder.new_scratch_row(), builder.new_scratch_row()};
    if (n == 1) builder.copy(in(0), out(0), true);
    for (int step = 0; step + 1 < n; ++step) {
      const int slice = slice_at(step + 1);
      builder.send(next, step == 0 ? in(slice_at(0)) : scratch(rows[step % 2], slice_at(step)));
      Source own = Builder::local(in(slice));
      own.joins = 1;
      const bool last = step + 2 == n;
      builder.reduce({Builder::message(previous, in(slice), step > 0), own},
                     last ? out(slice) : scratch(rows[(step + 1) % 2], slice), last);
    }
    for (int step = 0; step + 1 < n; ++step) {
      builder.send(next, out(slice_at(step - 1 + n)));
      builder.receive(previous, out(slice_at(step)));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example two_shot(const Layout& layout, int chunks) {
  const int n = layout.ranks();
  Example example{"two_shot", layout, {Collective::all_reduce, 0, Order::canonical}, {}};
  std::vector<int> bounds = {0};
  for (int rank = 0; rank < n; ++rank) {
    const std::vector<int> own = subtree_bounds(layout, rank);
    bounds.insert(bounds.end(), own.begin() + 1, own.end());
  }
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n, chunks);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      for (int peer = 0; peer < n; ++peer)
        if (peer != rank)
          for (const Region& node : combine_own_leaves(builder, layout, rank, peer, chunk)) builder.send(peer, node);
      std::vector<Source> sources;
      for (int peer = 0; peer < n; ++peer) {
        const std::vector<int> theirs = subtree_bounds(layout, peer);
        if (peer == rank)
          for (const Region& node : combine_own_leaves(builder, layout, rank, rank, chunk))
            sources.push_back(Builder::local(node));
        else
          for (std::size_t i = 0; i + 1 < theirs.size(); ++i)
            sources.push_back(Builder::message(peer, in(rank, chunk), theirs[i + 1] - theirs[i] > 1));
      }
      builder.reduce(with_joins(sources, bounds), out(rank, chunk), true);
      for (int peer = 0; peer < n; ++peer)
        if (peer != rank) builder.send(peer, out(rank, chunk));
      for (int peer = 0; peer < n; ++peer)
        if (peer != rank) builder.receive(peer, out(peer, chunk));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example recursive_doubling(int n) {
  Example example{"recursive_doubling", Layout::of(n), {Collective::all_reduce, 0, Order::canonical}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, 1);
    const int rows[] = {builder.new_scratch_row(), builder.new_scratch_row()};
    Region mine = in(0);
    for (int distance = 1, round = 0; distance < n; distance *= 2, ++round) {
      const int peer = rank ^ distance;
      const Region to = scratch(rows[round % 2], 0);
      builder.send(peer, mine);
      Source own = Builder::local(mine), other = Builder::message(peer, mine, round > 0);
      (rank < peer ? other : own).joins = 1;
      builder.reduce(rank < peer ? std::vector{own, other} : std::vector{other, own}, to);
      mine = to;
    }
    builder.copy(mine, out(0), true);  // not sooner: in place, the peer still reads the input
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example binomial_tree(int n, int chunks) {
  Example example{"binomial_tree", Layout::of(n), {Collective::all_reduce, 0, Order::canonical}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, 1, chunks);
    const int row = builder.new_scratch_row();
    std::vector<int> children;
    int distance = 1;
    for (; rank % (2 * distance) == 0 && distance < n; distance *= 2)
      if (rank + distance < n) children.push_back(rank + distance);
    const int parent = rank - distance;
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::vector<Source> sources = {Builder::local(in(0, chunk))};
      for (int child : children) {
        const bool leaf = child % 2 == 1 || child + 1 == n;
        sources.push_back(Builder::message(child, in(0, chunk), !leaf));
        sources.back().joins = 1;
      }
      if (rank == 0) {
        builder.reduce(sources, out(0, chunk), true);
      } else if (children.empty()) {
        builder.send(parent, in(0, chunk));
      } else {
        builder.reduce(sources, scratch(row, 0, chunk));
        builder.send(parent, scratch(row, 0, chunk));
      }
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (rank != 0) builder.receive(parent, out(0, chunk));
      for (int child : children) builder.send(child, out(0, chunk));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example direct_reduce_scatter(int n) {
  Example example{"direct_reduce_scatter", Layout::of(n), {Collective::reduce_scatter, 0, Order::canonical}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n, 1, true);
    for (int peer = 0; peer < n; ++peer)
      if (peer != rank) builder.send(peer, in(peer));
    std::vector<Source> sources;
    for (int peer = 0; peer < n; ++peer)
      sources.push_back(peer == rank ? Builder::local(in(rank)) : Builder::message(peer, in(rank), false));
    builder.reduce(with_joins(sources, example.layout.first_leaf), out(rank), true);
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example ring_all_gather(int n) {
  Example example{"ring_all_gather", Layout::of(n), {Collective::all_gather, 0, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n, 1, true);
    builder.copy(in(rank), out(rank));
    for (int step = 0; step + 1 < n; ++step) {
      builder.send((rank + 1) % n, out((rank - step + n) % n));
      builder.receive((rank + n - 1) % n, out((rank - step - 1 + n) % n));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example chain_broadcast(int n, int root, int chunks) {
  Example example{"chain_broadcast", Layout::of(n), {Collective::broadcast, root, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, 1, chunks);
    for (int chunk = 0; chunk < chunks; ++chunk) {
      if (rank == root)
        builder.copy(in(0, chunk), out(0, chunk));
      else
        builder.receive((rank + n - 1) % n, out(0, chunk));
      if ((rank + 1) % n != root) builder.send((rank + 1) % n, out(0, chunk));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example dissemination(int n) {
  Example example{"dissemination", Layout::of(n), {Collective::barrier, 0, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, 1);
    const int row = builder.new_scratch_row();
    for (int distance = 1; distance < n; distance *= 2) {
      builder.send((rank + distance) % n, in(0));
      builder.reduce({Builder::message((rank + n - distance) % n, in(0), false)}, scratch(row, 0));
    }
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

namespace {

// Rows of slices [first.slice, end), side by side.
Extent up_to(const Region& first, int end) {
  std::vector<std::uint32_t> further;
  for (int slice = static_cast<int>(first.slice) + 1; slice < end; ++slice) further.push_back(slice);
  return {first, further};
}

}  // namespace

Example chain_gather(int n) {
  Example example{"chain_gather", Layout::of(n), {Collective::gather, 0, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n, 1, true);
    const int rows = rank == 0 ? 0 : builder.new_scratch_rows(n - rank);
    const auto place = [&](int slice) {
      return rank == 0 ? out(slice)
                       : Region{Space::relay, static_cast<std::uint16_t>(rows + slice - rank),
                                static_cast<std::uint32_t>(slice), 0};
    };
    if (rank + 1 < n) builder.receive(rank + 1, up_to(place(rank + 1), n));
    builder.copy(in(rank), place(rank));
    if (rank > 0) builder.send(rank - 1, up_to(place(rank), n));
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

Example chain_all_gather(int n) {
  Example example{"chain_all_gather", Layout::of(n), {Collective::all_gather, 0, Order::any}, {}};
  for (int rank = 0; rank < n; ++rank) {
    Builder builder(rank, n, 1, true);
    builder.copy(in(rank), out(rank));
    if (rank + 1 < n) builder.receive(rank + 1, up_to(out(rank + 1), n));
    if (rank > 0) {
      builder.send(rank - 1, up_to(out(rank), n));
      builder.receive(rank - 1, up_to(out(0), rank));
    }
    if (rank + 1 < n) builder.send(rank + 1, up_to(out(0), rank + 1));
    example.schedules.push_back(std::move(builder).build());
  }
  return example;
}

std::vector<Example> examples(int n) {
  std::vector<Example> all = {ring(n),
                              two_shot(Layout::of(n), 1),
                              two_shot(Layout::of(n), 3),
                              binomial_tree(n, 1),
                              binomial_tree(n, 3),
                              direct_reduce_scatter(n),
                              ring_all_gather(n),
                              chain_broadcast(n, n / 2, 1),
                              chain_broadcast(n, 0, 4),
                              dissemination(n),
                              chain_gather(n),
                              chain_all_gather(n)};
  if ((n & (n - 1)) == 0) all.push_back(recursive_doubling(n));
  std::vector<int> leaves;
  for (int rank = 0; rank < n; ++rank) leaves.push_back((rank * 2 + 3) % 5);
  if (layout_of_leaves(leaves).leaves() > 0) all.push_back(two_shot(layout_of_leaves(leaves), 1));
  return all;
}

}  // namespace tutti::internal
