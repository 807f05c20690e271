// What the tests of all algorithms sweep over.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "collectives/catalogue.h"
#include "schedule/verify.h"
#include "types/collective.h"

namespace tutti::internal {

// What the entry claims to keep.
inline Goal goal_of(const AlgorithmEntry& entry, int root = 0) {
  return {entry.collective, root, entry.canonical ? Order::canonical : Order::any};
}
inline Goal goal_of(const AlgorithmEntry& entry, const Message& message) {
  Goal goal = goal_of(entry, message.root);
  goal.in_place = message.in_place;
  return goal;
}
// Whether output may be input's memory, or not, in the same schedule.
inline bool takes_both(const AlgorithmEntry& entry) { return !traits_of(entry.collective).exchanges(); }

// Whether its schedule depends on Message::ahead.
inline bool is_paced(const AlgorithmEntry& entry) {
  return entry.collective == Collective::all_gather && entry.algorithm == Algorithm::one_shot;
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

// One leaf a rank; rank r is on hosts[r].
inline Layout on_hosts(std::vector<int> hosts) {
  Layout layout = Layout::of(static_cast<int>(hosts.size()));
  layout.host = std::move(hosts);
  return layout;
}

// "0,0,1"
inline std::vector<int> hosts_in(const std::string& text) {
  std::vector<int> hosts;
  std::istringstream numbers(text);
  for (std::string number; std::getline(numbers, number, ',');) hosts.push_back(std::stoi(number));
  return hosts;
}

inline std::string in_words(const std::vector<int>& hosts) {
  std::string text = "hosts";
  for (int host : hosts) text.append(" ").append(std::to_string(host));
  return text;
}

// n ranks on one host, one a host, on hosts of 2, 3 and 4 (the last one clipped), interleaved over 2 and 3, in uneven
// hosts, and anywhere. Hosts are numbered in any order, with gaps.
inline std::vector<std::vector<int>> placements(int n, std::mt19937& random) {
  const std::vector<std::function<int(int)>> ways{[](int) { return 7; },
                                                  [](int rank) { return rank; },
                                                  [](int rank) { return rank / 2; },
                                                  [](int rank) { return 9 - rank / 3; },
                                                  [](int rank) { return rank / 4; },
                                                  [](int rank) { return rank % 2; },
                                                  [](int rank) { return 2 - rank % 3; },
                                                  [n](int rank) { return rank < 2 * n / 5 ? 0 : 1; },
                                                  [](int rank) { return rank == 0 ? 0 : 1 + rank % 5 / 4; }};
  std::vector<std::vector<int>> placements;
  for (const auto& way : ways)
    for (placements.emplace_back(); static_cast<int>(placements.back().size()) < n;)
      placements.back().push_back(way(static_cast<int>(placements.back().size())));
  for (int hosts : {2, 3, 5}) {
    placements.emplace_back();
    for (int rank = 0; rank < n; ++rank) placements.back().push_back(static_cast<int>(random() % hosts));
  }
  return placements;
}

// Whether its schedules depend on which ranks share a host.
inline bool looks_at_hosts(const AlgorithmEntry& entry) {
  const auto schedules = [&](const Layout& layout) { return build_all(entry, layout, {}); };
  const auto together = schedules(Layout::of(6));
  return schedules(on_hosts({0, 0, 1, 1, 2, 2})) != together || schedules(on_hosts({0, 1, 0, 1, 0, 1})) != together;
}

inline constexpr int kMaxRanks = 64;

// Sanitizers make a proof twenty times as long, and what is to be found of that kind shows with few ranks.
#ifdef TUTTI_BRIEF
inline constexpr int kMaxRanksQuickly = 12;
#else
inline constexpr int kMaxRanksQuickly = kMaxRanks;
#endif

inline Proof prove(const AlgorithmEntry& entry, const Layout& layout, const Message& message, Order order) {
  return verify(build_all(entry, layout, message), layout, {entry.collective, message.root, order, message.in_place});
}

inline void expect_proof(const AlgorithmEntry& entry, const Layout& layout, Message message) {
  const Proof proof = prove(entry, layout, message, goal_of(entry).order);
  EXPECT_TRUE(proof.holds) << name_of(entry) << ", " << layout.ranks() << " ranks, " << layout.leaves() << " leaves, "
                           << in_words(layout.host) << ", root " << message.root << ", " << message.chunks << " chunks"
                           << (message.in_place ? ", in place: " : ": ") << proof.reason;
  if (entry.copied_once != Copied::nothing && !message.copies_once) {
    Message copying = message;
    copying.copies_once = true;
    expect_proof(entry, layout, copying);
    copying.copies_inputs = true;
    if (entry.copied_once == Copied::output) expect_proof(entry, layout, copying);
  }
  if (is_paced(entry) && message.ahead == 0) {
    Message paced = message;
    paced.ahead = 1;
    expect_proof(entry, layout, paced);
  }
  if (takes_both(entry) || message.in_place) return;
  message.in_place = true;
  expect_proof(entry, layout, message);
}

}  // namespace tutti::internal
