// What the tests of all algorithms sweep over.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "collectives/catalogue.h"
#include "schedule/verify.h"

namespace tutti {

inline std::string name_of(const AlgorithmEntry& entry) {
  return std::string(to_string(entry.collective)) + " " + std::string(to_string(entry.algorithm));
}

// What the entry claims to keep.
inline Goal goal_of(const AlgorithmEntry& entry, int root = 0) {
  return {entry.collective, root, entry.canonical ? Order::canonical : Order::any};
}

inline bool is_reduction(const AlgorithmEntry& entry) {
  return entry.collective == Collective::all_reduce || entry.collective == Collective::reduce_scatter;
}

inline std::vector<int> chunks_of(const AlgorithmEntry& entry) {
  return entry.pipelined ? std::vector<int>{1, 2, 5} : std::vector<int>{1};
}

// `leaves` leaves spread at random over n ranks, some of which may get none.
inline Layout random_layout(int n, int leaves, std::mt19937& random) {
  Layout layout = Layout::of(n);
  for (int rank = 1; rank < n; ++rank) layout.first_leaf[rank] = static_cast<int>(random() % (leaves + 1));
  std::sort(layout.first_leaf.begin(), layout.first_leaf.end() - 1);
  layout.first_leaf[n] = leaves;
  return layout;
}

inline constexpr int kMostRanks = 64;

inline Proof prove(const AlgorithmEntry& entry, const Layout& layout, const Message& message, Order order) {
  return verify(build_all(entry, layout, message), layout, {entry.collective, message.root, order});
}

inline void expect_proof(const AlgorithmEntry& entry, const Layout& layout, const Message& message) {
  const Proof proof = prove(entry, layout, message, goal_of(entry).order);
  EXPECT_TRUE(proof.holds) << name_of(entry) << ", " << layout.ranks() << " ranks, " << layout.leaves()
                           << " leaves, root " << message.root << ", " << message.chunks << " chunks: " << proof.reason;
}

}  // namespace tutti
