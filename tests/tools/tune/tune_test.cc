// tutti tune: its rules, its predictions, and the program from end to end.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "brief.h"
#include "plan/candidates.h"
#include "selection/choose_text.h"
#include "selection/table_file.h"
#include "tools/shell.h"
#include "tune/check.h"
#include "tune/rules.h"
#include "tune/text.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;
using internal::Chooser;
using internal::HostCount;
using testing::HasSubstr;

// Making a table is what takes long here: each algorithm is priced for each number of ranks and size.
const std::vector<int> kRanks = kBrief ? std::vector{2, 4} : std::vector{2, 4, 8};

ChoiceTable table_from(const CostModel& model, const Grid& grid = {.ranks = kRanks}) {
  ChoiceTable table{{}, model};
  for (const HostCount hosts : {HostCount::one, HostCount::several})
    for (const auto& rule : make_rules(model, hosts, grid)) table.rules.push_back(rule);
  return table;
}

CostModel with(double message_us, double byte_us, double combined_us) {
  return {.local = LinkCost::line(message_us, byte_us, true),
          .remote = LinkCost::line(message_us, byte_us, false),
          .reduce = CostCurve::line(0, combined_us)};
}

// What a table picks is, by its own prices, no more than a fifth above the best that it could.
TEST(MakeRules, PickWhatIsPredictedToBeTheCheapestOrClose) {
  const CostModel model = with(2, 1e-3, 5e-4);
  const ChoiceTable table = table_from(model);
  for (const int ranks : kRanks)
    for (const Collective collective : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                        Collective::broadcast, Collective::barrier, Collective::all_to_all})
      for (const std::size_t bytes : {8, 512, 32 << 10, 8 << 20}) {
        const Chooser chooser(table, ranks, 1);
        const Question question{collective, Layout::of(ranks), collective == Collective::barrier ? 0 : bytes};
        const auto all = candidates(question, chooser, model);
        const Algorithm chosen = chooser.choose(collective, question.bytes, Order::canonical);
        for (const Candidate& each : all) {
          if (each.entry->algorithm != chosen) continue;

          EXPECT_LE(each.cost->us, all.front().cost->us * 1.2)
              << to_string(collective) << " " << ranks << " x " << bytes << ": " << to_string(chosen);
        }
      }
}

TEST(MakeRules, DearMessagesAskForFewOfThemAndDearBytesForFewOfThose) {
  const auto chosen = [](const CostModel& model, std::size_t bytes) {
    const ChoiceTable table{make_rules(model, HostCount::several, {.ranks = {8}}), model};
    return Chooser(table, 8, 8).choose(Collective::all_reduce, bytes, Order::canonical);
  };
  const Algorithm dear_messages = chosen(with(1000, 1e-9, 1e-9), 64), dear_bytes = chosen(with(1e-6, 1, 1e-6), 8 << 20);
  const auto sent = [](Algorithm algorithm) {
    const Question question{Collective::all_reduce, Layout::of(8), 8 << 20};
    return price_of(*find_algorithm(Collective::all_reduce, algorithm), 1, question, {});
  };
  EXPECT_LE(sent(dear_messages).max_messages_sent, 7);
  EXPECT_LE(sent(dear_bytes).max_bytes_sent, 14 * (std::size_t{1} << 20) + 64);
  EXPECT_NE(dear_messages, dear_bytes);
}

TEST(MakeRules, MakeATableThatCanBeReadBackAndKeepsTheOrder) {
  const ChoiceTable pairs = table_from({}, {.ranks = {2}});  // a ring is canonical there, and must not be beyond
  EXPECT_EQ(internal::parse_table(to_text(pairs), "t"), pairs);
  std::vector models{CostModel{}, with(1, 1e-4, 1e-4), with(100, 1e-6, 1)};
  if (kBrief) models.resize(1);
  for (const CostModel& model : models) {
    const ChoiceTable table =
        table_from(model, {.ranks = kBrief ? std::vector{2, 3} : std::vector{2, 3, 8}, .ranks_per_host = 2});
    EXPECT_EQ(internal::parse_table(annotated(table, {"a comment", "another"}), "t"), table);
    EXPECT_LT(annotated(table, {}).size(), internal::kMaxTableBytes);
    for (const int ranks : {2, 5, 100})
      for (const int hosts : {1, 3})
        for (const AlgorithmEntry& entry : catalogue()) {
          const Chooser chooser(table, ranks, hosts);
          const auto* picked =
              find_algorithm(entry.collective, chooser.choose(entry.collective, 1 << 16, Order::canonical));
          ASSERT_NE(picked, nullptr);
          EXPECT_TRUE(picked->canonical || ranks == 2);
        }
  }
}

TEST(Predict, MoreBytesRanksAndCrowdingAreNeverCheaper) {
  CostModel model = with(1, 1e-3, 1e-3);
  model.local.switch_us = 5;
  for (const AlgorithmEntry& entry : catalogue()) {
    double before = 0;
    for (const std::size_t bytes : {0, 64, 4096, 1 << 20}) {
      const double us = predict(entry, 4, bytes, 1, model, "shm");
      EXPECT_GE(us, before) << entry.idea;
      before = us;
      CostModel crowded = model;
      crowded.cores = 2;
      EXPECT_GE(predict(entry, 4, bytes, 1, crowded, "shm"), us) << entry.idea;
    }
    if (entry.collective != Collective::all_reduce) continue;
    EXPECT_GE(predict(entry, 8, 1 << 20, 1, model, "shm"), predict(entry, 2, 1 << 20, 1, model, "shm")) << entry.idea;
  }
}

TEST(Tune, WritesATableThatAJobThenUses) {
  const TableFile file("");
  const Result tune = shell("$TUTTI tune -n 2 --rounds 1 --sizes 8 --max-ranks 2 --transport shm --out " + file.path());
  ASSERT_EQ(tune.status, 0) << tune.err;
  EXPECT_THAT(tune.err, HasSubstr("measuring messages"));
  EXPECT_THAT(tune.out, HasSubstr("# median relative error "));
  EXPECT_THAT(tune.out, HasSubstr("set TUTTI_TABLE=" + file.path()));
  const ChoiceTable table = internal::parse_table(internal::read_table_file(file.path()), file.path());
  EXPECT_GE(table.rules.size(), 5u);
  EXPECT_GT(table.model.local.arrival.at(8), 0);
  EXPECT_EQ(table.model.remote, CostModel{}.remote) << "was not measured";
  const Result run = shell("export TUTTI_TABLE=" + file.path() +
                           "; $TUTTI bench all_reduce -n 2 --sizes 8 --iterations 1 --rounds 1 --json");
  const auto row = nlohmann::json::parse(run.out);
  char hash[17];
  std::snprintf(hash, sizeof hash, "%016llx", static_cast<unsigned long long>(internal::hash_of(table)));
  EXPECT_EQ(row["table"], hash);
  EXPECT_THAT(tune.out, HasSubstr(hash));
}

TEST(Tune, WithoutAFileItPrintsTheTable) {
  const Result tune = shell("$TUTTI tune -n 3 --rounds 1 --sizes 8,4K --max-ranks 3 --transport tcp 2>/dev/null");
  ASSERT_EQ(tune.status, 0);
  const ChoiceTable table = internal::parse_table(tune.out, "stdout");
  EXPECT_FALSE(table.rules.empty());
  for (const auto& rule : table.rules) EXPECT_EQ(rule.hosts, HostCount::several);
}

TEST(Tune, JsonHasARowForEveryAlgorithmAndSize) {
  const Result tune = shell("$TUTTI tune -n 2 --rounds 1 --sizes 8 --max-ranks 2 --transport shm --json 2>/dev/null");
  ASSERT_EQ(tune.status, 0);
  std::istringstream lines(tune.out);
  std::size_t rows = 0;
  nlohmann::json last;
  for (std::string line; std::getline(lines, line);) {
    last = nlohmann::json::parse(line);
    if (!last.contains("algorithm")) continue;
    ++rows;
    EXPECT_GT(last["predicted_us"], 0.0);
    EXPECT_GT(last["measured_us"], 0.0);
  }
  EXPECT_EQ(rows, catalogue().size()) << "two ranks combine in any order";
  EXPECT_GT(last["median_relative_error"], 0.0);
  EXPECT_NO_THROW(internal::parse_table(std::string(last["text"]), "json"));
}

TEST(Tune, WrongCommandLinesAreRefusedBeforeAnythingRuns) {
  for (const std::string words : {"-n 1", "-n 1000", "--transport verbs", "--sizes many", "--sizes 1G", "--rounds 0",
                                  "--out /no/such/folder/file", "--out /tmp", "--max-ranks 1", "extra"}) {
    const Result tune = shell("$TUTTI tune " + words);
    EXPECT_EQ(tune.status, 2) << words;
    EXPECT_THAT(tune.err, testing::StartsWith("tutti tune: ")) << words;
    EXPECT_EQ(tune.out, "") << words;
  }
  EXPECT_EQ(shell("TUTTI_RANK=0 TUTTI_SIZE=1 $TUTTI tune").status, 2);
}

}  // namespace
}  // namespace tutti::internal::tools
