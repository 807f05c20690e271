// tutti plan --explain
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/catalogue.h"
#include "selection/choose_text.h"
#include "selection/table_file.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

std::vector<nlohmann::json> objects(const std::string& out) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::string hash_text(const std::string& table) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(internal::hash_of(internal::parse_table(table, "t"))));
  return text;
}

TEST(Explain, NamesTheRuleAndPricesEveryCandidate) {
  const Result said = shell("$TUTTI plan --explain all_reduce -n 8 --bytes 1M");
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("two_shot, by rule 6 of the built-in table:\n  rule    all_reduce"));
  EXPECT_THAT(said.out, HasSubstr(hash_text(to_text(internal::ChoiceTable::built_in()))));
  EXPECT_THAT(said.out, HasSubstr("\n* two_shot "));
  EXPECT_THAT(said.out, HasSubstr("ring               not allowed: cannot combine 8 inputs in the canonical order"));
  for (const AlgorithmEntry& entry : catalogue()) {
    if (entry.collective != Collective::all_reduce) continue;
    const std::string mark = entry.algorithm == Algorithm::two_shot ? "\n* " : "\n  ";
    EXPECT_THAT(said.out, HasSubstr(mark + std::string(to_string(entry.algorithm))));
  }
}

TEST(Explain, TheBestComesFirstAndWhatIsNotAllowedLast) {
  const auto all = objects(shell("$TUTTI plan --explain all_reduce -n 8 --bytes 64K --json").out);
  double before = 0;
  bool allowed = true;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    EXPECT_LE(all[i]["allowed"], allowed);
    allowed = all[i]["allowed"];
    if (!allowed) continue;
    EXPECT_GE(all[i]["us"], before);
    before = all[i]["us"];
    EXPECT_EQ(all[i]["bytes_between_hosts"], 0);
  }
  EXPECT_FALSE(allowed);
  EXPECT_EQ(all.back()["chosen"], "two_shot");
}

TEST(Explain, HostsOrderAndTableCount) {
  const TableFile file("tutti table 1\nrule all_reduce * several * any ring 4K\n");
  const std::string command =
      "$TUTTI plan --explain all_reduce --hosts 0,0,1,1,1,2,2 --bytes 1M --json --table " + file.path();
  const auto canonical = objects(shell(command).out).back();
  EXPECT_EQ(canonical["ranks"], 7);
  EXPECT_EQ(canonical["hosts"], 3);
  EXPECT_EQ(canonical["chosen"], "hierarchical");
  const auto any = objects(shell(command + " --order any").out);
  EXPECT_EQ(any.back()["chosen"], "ring");
  EXPECT_THAT(any.back()["rule"], HasSubstr("several"));
  for (const auto& each : any) {
    if (each.contains("chosen")) continue;
    EXPECT_TRUE(each["allowed"]) << each;
    EXPECT_GT(each["messages_between_hosts"], 0) << each;
  }
  EXPECT_EQ(any.back()["table"], hash_text("tutti table 1\nrule all_reduce * several * any ring 4K\n"));
  const auto by_variable =
      objects(shell("export TUTTI_TABLE=" + file.path() + "; $TUTTI plan --explain all_reduce -n 3 --json").out);
  EXPECT_EQ(by_variable.back()["table"], any.back()["table"]);
}

TEST(Explain, RanksOfOneMachineShareItsCores) {
  const std::string links = "tutti table 1\nshm 8 1 1\nshm 1M 100 100\ntcp 8 10 10\ntcp 1M 1000 1000\nswitch tcp 5\n";
  const TableFile roomy(links + "cores 4\n"), crowded(links + "cores 2\n");
  const auto price = [](const TableFile& table, const std::string& words) {
    const Result said =
        shell("$TUTTI plan --explain all_reduce -n 4 --hosts 4 --bytes 64K --json --table " + table.path() + words);
    EXPECT_EQ(said.status, 0) << said.err;
    return objects(said.out)[0]["us"].get<double>();
  };
  EXPECT_DOUBLE_EQ(price(roomy, " --one-machine"), price(roomy, "")) << "a core each, and TCP either way";
  EXPECT_DOUBLE_EQ(price(crowded, ""), price(roomy, ""));
  EXPECT_GT(price(crowded, " --one-machine"), 1.5 * price(crowded, ""));
}

TEST(Explain, WhatDoesNotExistIsWrongInput) {
  const TableFile file("tutti table 1\nrule all_reduce\n");
  for (const std::string words :
       {"ring", "no_such", "all_reduce -n 100000", "all_reduce -n 4 --hosts 5", "all_reduce --hosts 0",
        "all_reduce --order none", "all_reduce --bytes many", "all_reduce --table /no/such/file"}) {
    const Result said = shell("$TUTTI plan --explain " + words);
    EXPECT_EQ(said.status, 2) << words;
    EXPECT_THAT(said.err, testing::StartsWith("tutti plan: ")) << words;
    EXPECT_EQ(said.out, "") << words;
  }
  const Result said = shell("$TUTTI plan --explain all_reduce --table " + file.path());
  EXPECT_EQ(said.status, 2);
  EXPECT_THAT(said.err, HasSubstr(file.path() + ", line 2: rule takes 7 words"));
}

TEST(TableOfAJob, OfRank0CountsAndIsShownByItsHash) {
  const std::string text = "tutti table 1\nrule all_reduce * * * canonical binomial_tree 4K\n";
  const TableFile file(text);
  const Result run = shell("export TUTTI_TABLE=" + file.path() +
                           "; $TUTTI bench all_reduce -n 3 --sizes 8,64K --iterations 2 --rounds 1 --json");
  ASSERT_EQ(run.status, 0) << run.err;
  for (const auto& row : objects(run.out)) {
    EXPECT_EQ(row["algorithm"], "binomial_tree");
    EXPECT_EQ(row["table"], hash_text(text));
    EXPECT_EQ(row["wrong"], 0);
  }
  const Result others = shell("$TUTTI run -n 3 sh -c '[ $TUTTI_RANK = 0 ] && export TUTTI_TABLE=" + file.path() +
                              " || export TUTTI_TABLE=/no/such/file; exec " FIRST_PROGRAM "'");
  EXPECT_EQ(others.status, 0) << others.err;
}

TEST(TableOfAJob, ThatIsWrongEndsEveryRankAtOnce) {
  const TableFile file("tutti table 1\nrule all_reduce 8 one 2K canonical quickest *\n");
  const Result run = shell("export TUTTI_TABLE=" + file.path() + "; $TUTTI run -n 3 " FIRST_PROGRAM);
  EXPECT_EQ(run.status, 1);
  for (const char* rank : {"rank 0", "rank 1", "rank 2"})
    EXPECT_THAT(run.err, HasSubstr(std::string(rank) + " could not join: " + file.path() +
                                   ", line 2: there is no all_reduce by quickest"));
}

}  // namespace
}  // namespace tutti::internal::tools
