// What the algorithms' files claim to cost, and README.md's table, held against the schedules.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "brief.h"
#include "collectives/canonical_tree.h"
#include "collectives/formula.h"
#include "collectives/sweep.h"
#include "schedule/partition.h"

namespace tutti::internal {
namespace {

const std::string kSources = TUTTI_COLLECTIVES_SOURCES;  // the folder src/collectives

std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.is_open()) << path;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

const std::vector<int> kRanks =
    kBrief ? std::vector{2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 21}
           : std::vector{2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 15, 16, 17, 21, 24, 31, 32, 33, 47, 63, 64};

// Rows of README.md's table whose first column has that name: column name to cell.
std::vector<std::map<std::string, std::string>> table(const std::string& first_column) {
  std::vector<std::string> names;
  std::vector<std::map<std::string, std::string>> rows;
  for (const std::string& line : lines_of(kSources + "/README.md")) {
    if (names.empty() && !line.starts_with("| " + first_column + " |")) continue;
    if (line.starts_with("|---")) continue;
    if (!line.starts_with("| ")) break;
    std::vector<std::string> cells;
    std::istringstream rest(line.substr(1));
    for (std::string cell; std::getline(rest, cell, '|');) cells.push_back(cell.substr(1, cell.size() - 2));
    if (names.empty()) {
      names = cells;
      continue;
    }
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < names.size(); ++i) row[names[i]] = cells.at(i);
  }
  return rows;
}

std::string in_words(const AlgorithmEntry& entry, int n, int chunks) {
  return name_of(entry) + " on " + std::to_string(n) + " ranks, " + std::to_string(chunks) + " chunks";
}

void expect_bound(std::string_view formula, const Letters& letters, double found, const std::string& what) {
  const Bound bound = evaluate(formula, letters);
  if (bound.at_most)
    EXPECT_LE(found, bound.value + 1e-9) << what << ", which should be at most " << formula;
  else
    EXPECT_NEAR(found, bound.value, 1e-9) << what << ", which should be " << formula;
}

int messages_sent(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.steps.begin(), schedule.steps.end(),
                                        [](const Step& step) { return step.kind == StepKind::send; }));
}

// With a layout: to other hosts alone.
// In units of the message, or of a rank's buffer where each rank has its own.
double message_parts_sent(const Schedule& schedule, int ranks, const Layout* layout = nullptr) {
  const auto slices = static_cast<std::size_t>(schedule.exact_slices ? ranks : schedule.slices);
  const std::size_t count = 60 * slices;
  const Partition partition{.count = count, .slices = slices, .chunks = std::size_t(schedule.chunks)};
  std::size_t elements = 0;
  for (const Step& step : schedule.steps)
    if (step.kind == StepKind::send && (layout == nullptr || layout->host[schedule.rank] != layout->host[step.peer]))
      for (std::size_t i = 0; i < Schedule::rows_of(step); ++i)
        elements += partition.chunk(schedule.row_of(step, i).slice, step.region.chunk).size();
  return static_cast<double>(elements) / static_cast<double>(count);
}

TEST(Catalogue, ClaimsTheCostOfEveryAlgorithm) {
  for (const AlgorithmEntry& entry : catalogue()) {
    EXPECT_FALSE(entry.idea.empty()) << name_of(entry);
    for (const std::string_view formula : {entry.messages, entry.bytes, entry.rounds})
      EXPECT_NO_THROW(evaluate(formula, {})) << name_of(entry) << ": \"" << formula << "\" is no formula";
    EXPECT_EQ(entry.between_hosts.empty(), !looks_at_hosts(entry)) << name_of(entry);
  }
}

TEST(Catalogue, ExplainsEveryAlgorithmAtTheHeadOfItsFile) {
  for (const AlgorithmEntry& entry : catalogue()) {
    const std::string path = std::string(to_string(entry.collective)) + "/" + std::string(to_string(entry.algorithm));
    const std::vector<std::string> lines = lines_of(kSources + "/" + path + ".cc");
    const auto code = std::ranges::find_if(lines, [](const std::string& line) { return !line.starts_with("//"); });
    for (const std::string word : {"//  ", "// Time: ", "// Restrictions: ", "// Source: "})
      EXPECT_TRUE(std::any_of(lines.begin(), code, [&](const auto& line) { return line.starts_with(word); }))
          << path << ".cc lacks in its head: \"" << word << (word == "//  " ? "\", a picture" : "\"");
  }
}

TEST(Catalogue, SendsTheMessagesAndBytesThatItClaims) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n : kRanks)
      for (int chunks : chunks_of(entry)) {
        double messages = 0, most = 0;
        for (const Schedule& schedule : build_all(entry, Layout::of(n), {.root = n - 1, .chunks = chunks})) {
          messages += messages_sent(schedule);
          if (entry.collective != Collective::barrier) most = std::max(most, message_parts_sent(schedule, n));
        }
        expect_bound(entry.messages, {.n = n, .c = chunks}, messages, in_words(entry, n, chunks) + ": messages");
        expect_bound(entry.bytes, {.n = n, .c = chunks}, most,
                     in_words(entry, n, chunks) + ": bytes of the busiest rank");
      }
}

double most_parts_between_hosts(const AlgorithmEntry& entry, const Layout& layout, const Message& message) {
  double most = 0;
  for (const Schedule& schedule : build_all(entry, layout, message))
    most = std::max(most, message_parts_sent(schedule, layout.ranks(), &layout));
  return most;
}

TEST(Readme, SaysWhatCrossesBetweenHosts) {
  for (const std::string hosts : {"hosts of the ranks", "hosts of ranks"}) {  // of two tables
    const auto rows = table(hosts);
    EXPECT_FALSE(rows.empty());
    for (const auto& row : rows)
      for (const auto& [column, cell] : row) {
        if (column == hosts) continue;
        const std::size_t space = column.find(' ');
        const AlgorithmEntry* entry = find_algorithm(parse_collective(column.substr(0, space)).value(),
                                                     parse_algorithm(column.substr(space + 1)).value());
        ASSERT_NE(entry, nullptr) << column;
        const Layout layout = on_hosts(hosts_in(row.at(hosts)));
        expect_bound(cell, {.n = layout.ranks()}, most_parts_between_hosts(*entry, layout, {}),
                     column + " on " + row.at(hosts));
      }
  }
}

TEST(Catalogue, SendsBetweenHostsWhatItClaimsWhereHostsHoldAlignedPowersOfTwo) {
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.between_hosts.empty()) continue;
    for (int h : kBrief ? std::vector{2, 3, 5} : std::vector{2, 3, 4, 5, 7, 8})
      for (int g : {1, 2, 4, 8})
        for (int chunks : {1, 3}) {
          std::vector<int> hosts;
          for (int rank = 0; rank < h * g; ++rank) hosts.push_back(rank / g);
          const Letters letters{.n = h * g, .c = chunks, .h = h, .g = g};
          for (int root : {0, h * g - 1})
            expect_bound(entry.between_hosts, letters,
                         most_parts_between_hosts(entry, on_hosts(hosts), {.root = root, .chunks = chunks}),
                         in_words(entry, h * g, chunks) + " on " + std::to_string(h) + " hosts: bytes between hosts");
        }
  }
}

TEST(Catalogue, TakesTheRoundsThatItClaims) {
  for (const AlgorithmEntry& entry : catalogue())
    for (int n : kRanks) {
      const Layout layout = Layout::of(n);
      const Proof proof = verify(build_all(entry, layout, {}), layout, goal_of(entry));
      ASSERT_TRUE(proof.holds) << proof.reason;
      expect_bound(entry.rounds, {.n = n}, proof.rounds, in_words(entry, n, 1) + ": rounds");
      expect_bound(entry.messages, {.n = n}, static_cast<double>(proof.messages),
                   in_words(entry, n, 1) + ": messages proven");
    }
}

TEST(Catalogue, SendsNothingWhenAlone) {
  for (const AlgorithmEntry& entry : catalogue()) {
    const Schedule alone = entry.schedule(0, Layout::of(1), {});
    for (const Step& step : alone.steps) EXPECT_EQ(step.kind, StepKind::reduce) << name_of(entry);
  }
}

TEST(RecursiveDoublingAllReduce, SendsLogNTimesTheMessageOnPowersOfTwo) {
  for (int n = 2; n <= 64; n *= 2)
    for (const Schedule& schedule :
         build_all(*find_algorithm(Collective::all_reduce, Algorithm::recursive_doubling), Layout::of(n), {}))
      EXPECT_EQ(1 << messages_sent(schedule), n);
}

int messages_combined(const Schedule& schedule) {
  return static_cast<int>(std::count_if(schedule.sources.begin(), schedule.sources.end(),
                                        [](const Source& source) { return source.peer != kLocal; }));
}

TEST(SlicedTreeReduceScatter, EachRankSendsEachSliceOnceAndReceivesAtMostHalfAsManyAgain) {
  for (int n = 2; n <= 48; ++n)
    for (const Schedule& schedule :
         build_all(*find_algorithm(Collective::reduce_scatter, Algorithm::sliced_tree), Layout::of(n), {})) {
      std::vector<int> sent(n, 0);
      for (const Step& step : schedule.steps)
        if (step.kind == StepKind::send) ++sent[step.region.slice];
      for (int slice = 0; slice < n; ++slice) EXPECT_EQ(sent[slice], slice != schedule.rank) << n << " ranks";
      EXPECT_LE(messages_combined(schedule), 1.5 * (n - 1)) << n << " ranks";
    }
}

// A node that its parent's holder does not hold is one message.
void count_messages(const HeldTree& tree, Node node, std::vector<int>& received) {
  if (node.is_leaf()) return;
  const int holder = tree.holder[node.index()];
  for (const Node& child : {Node{node.lo, node.split()}, Node{node.split(), node.hi}}) {
    if (tree.holder[child.index()] != holder) ++received[holder];
    count_messages(tree, child, received);
  }
}

TEST(SlicedTree, BalancesReceivesForUpTo128Ranks) {
  for (int n = 2; n <= 128; ++n) {
    std::vector<int> received(n, 0);
    for (const HeldTree& tree : held_in_balance(Layout::of(n))) count_messages(tree, {0, n}, received);
    EXPECT_LE(*std::max_element(received.begin(), received.end()), 1.5 * (n - 1)) << n << " ranks";
  }
}

}  // namespace
}  // namespace tutti::internal
