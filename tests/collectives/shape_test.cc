// What the executor relies on in particular schedules, and what algorithms refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>

#include "collectives/peers.h"
#include "collectives/sweep.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

// kinds[first, first + count) are all `kind`, and to the peers after rank, in that order.
void expect_peers_in_turn(const Schedule& schedule, std::size_t first, StepKind kind, int n) {
  const std::vector<int> peers = peers_after(schedule.rank, n);
  for (std::size_t i = 0; i < peers.size(); ++i) {
    EXPECT_EQ(schedule.steps[first + i].kind, kind) << "step " << first + i;
    EXPECT_EQ(schedule.steps[first + i].peer, peers[i]) << "step " << first + i;
  }
}

TEST(TwoShotAllReduce, IsOnePassOverAllInputsWithEveryReceivePostedFirstAndItsSendsRightBehind) {
  for (int n : {2, 3, 8})
    for (const Schedule& schedule :
         build_all(*find_algorithm(Collective::all_reduce, Algorithm::two_shot), Layout::of(n), {})) {
      ASSERT_EQ(schedule.steps.size(), 3 * (n - 1) + 1u);
      EXPECT_EQ(schedule.scratch_rows, 0);
      expect_peers_in_turn(schedule, 0, StepKind::receive, n);
      expect_peers_in_turn(schedule, n - 1, StepKind::send, n);
      const Step& reduce = schedule.steps[2 * n - 2];
      EXPECT_EQ(reduce.kind, StepKind::reduce);
      EXPECT_TRUE(reduce.finish);
      EXPECT_EQ(reduce.region.space, Space::output);
      const auto sources = schedule.sources_of(reduce);
      ASSERT_EQ(static_cast<int>(sources.size()), n);
      for (int leaf = 0; leaf < n; ++leaf) EXPECT_EQ(sources[leaf].peer, leaf == schedule.rank ? kLocal : leaf);
      expect_peers_in_turn(schedule, 2 * n - 1, StepKind::send, n);
      EXPECT_EQ(schedule.steps[2 * n - 1].region, reduce.region);
    }
}

TEST(BinomialTreeAllReduce, CombinesAllThatARankHoldsInOnePass) {
  const auto schedules =
      build_all(*find_algorithm(Collective::all_reduce, Algorithm::binomial_tree), Layout::of(8), {});
  ASSERT_EQ(schedules[0].sources.size(), 4u);  // its own, and those of 1, 2 and 4
  EXPECT_EQ(schedules[0].steps[0].part_count, 4);
  EXPECT_EQ(schedules[1].sources.size(), 0u);  // a leaf only sends
}

std::string refusal(const AlgorithmEntry& entry, int rank, const Layout& layout, const Message& message) {
  try {
    entry.schedule(rank, layout, message);
  } catch (const Error& error) {
    EXPECT_EQ(error.code, ErrorCode::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Catalogue, RefusesInWordsWhatItDoesNotTake) {
  Layout uneven = Layout::of(3);
  uneven.first_leaf = {0, 2, 2, 5};
  Layout descending = uneven, empty = uneven, short_map = uneven;
  descending.first_leaf = {0, 2, 1, 5};
  empty.first_leaf = {0, 0, 0, 0};
  short_map.first_leaf = {0, 3};
  const auto says = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const AlgorithmEntry& entry : catalogue()) {
    const std::string uneven_refused = refusal(entry, 0, uneven, {});
    if (entry.several_leaves)
      EXPECT_EQ(uneven_refused, "") << name_of(entry);
    else
      EXPECT_TRUE(says(uneven_refused, "exactly one leaf a rank, but rank 0 holds 2"))
          << name_of(entry) << uneven_refused;
    EXPECT_TRUE(says(refusal(entry, 0, descending, {}), "ascend")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, short_map, {}), "needs 4 entries")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, empty, {}), "leaves; got 0")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 3, Layout::of(3), {}), "no rank 3 among 3")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, Layout::of(3), {.root = 3}), "no root 3 among 3")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, Layout::of(3), {.chunks = 0}), "chunks; got 0")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, Layout::of(70000), {}), "got 70000")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, Layout::of(0), {}), "got 0")) << name_of(entry);
    EXPECT_TRUE(says(refusal(entry, 0, uneven, {.root = -1}), name_of(entry))) << "names the algorithm";
  }
}

TEST(TwoShotAllReduce, RefusesMorePartialResultsThanCanBeNumbered) {
  // Rank 1 holds all leaves but the first and the last: 16 nodes of T that are no leaves, for each of the other ranks'
  // slices.
  Layout layout = Layout::of(4200);
  std::fill(layout.first_leaf.begin() + 2, layout.first_leaf.end(), 1023);
  layout.first_leaf.back() = 1024;
  const std::string refused = refusal(*find_algorithm(Collective::all_reduce, Algorithm::two_shot), 1, layout, {});
  EXPECT_NE(refused.find("partial results"), std::string::npos) << refused;
}

// A file that algorithms.def lacks would not even be compiled.
TEST(Catalogue, HasEveryFileOfAnAlgorithm) {
  std::set<std::string> files;
  for (const auto& collective : std::filesystem::directory_iterator(TUTTI_COLLECTIVES_SOURCES)) {
    if (!collective.is_directory()) continue;
    for (const auto& file : std::filesystem::directory_iterator(collective))
      if (file.path().extension() == ".cc") files.insert(collective.path().filename() / file.path().filename());
  }
  for (const AlgorithmEntry& entry : catalogue()) {
    const std::string path = std::string(to_string(entry.collective)) + "/" + std::string(to_string(entry.algorithm));
    EXPECT_EQ(files.erase(path + ".cc"), 1u) << path;
  }
  for (const std::string& file : files) ADD_FAILURE() << "include/tutti/algorithms.def has no line for " << file;
}

// For every root: the one of its own host, and those of the others.
TEST(BinomialTree, OfGatherAndScatterSendsOneMessageBetweenTheRootAndEachHost) {
  for (const Collective collective : {Collective::gather, Collective::scatter})
    for (const int h : {1, 2, 3, 4, 5, 8})
      for (const int g : {1, 2, 4})
        for (int root = 0; root < h * g; ++root) {
          std::vector<int> hosts;
          for (int rank = 0; rank < h * g; ++rank) hosts.push_back(rank / g);
          int crossing = 0;
          for (const Schedule& schedule :
               build_all(*find_algorithm(collective, Algorithm::binomial_tree), on_hosts(hosts), {.root = root}))
            for (const Step& step : schedule.steps)
              crossing += step.kind == StepKind::send && hosts[schedule.rank] != hosts[step.peer];
          EXPECT_EQ(crossing, h - 1) << to_string(collective) << ", " << h << " hosts of " << g << ", root " << root;
        }
}

TEST(Catalogue, SaysWhoseMessagesAreOfSeveralRows) {
  std::mt19937 random(15);
  for (const AlgorithmEntry& entry : catalogue()) {
    bool joins = false;
    for (int n = 1; n <= 9; ++n)
      for (const std::vector<int>& hosts : placements(n, random))
        for (const Schedule& schedule : build_all(entry, on_hosts(hosts), {.root = n / 2}))
          joins = joins || !schedule.further_slices.empty();
    EXPECT_EQ(joins, entry.joins_rows) << name_of(entry);
    if (entry.joins_rows)
      EXPECT_THROW(require_unequal_rows(entry), Error);
    else
      EXPECT_NO_THROW(require_unequal_rows(entry));
  }
}

TEST(Catalogue, IsFoundByName) {
  for (const AlgorithmEntry& entry : catalogue()) EXPECT_EQ(find_algorithm(entry.collective, entry.algorithm), &entry);
  EXPECT_EQ(find_algorithm(Collective::barrier, Algorithm::ring), nullptr);
}

}  // namespace
}  // namespace tutti::internal
