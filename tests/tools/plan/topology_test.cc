// tutti plan --explain --topology
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "plan/explain_machine.h"
#include "selection/choose_text.h"
#include "selection/table_file.h"
#include "tools/plan/two_sockets.h"
#include "tools/shell.h"
#include "types/collective.h"

namespace tutti::internal::tools {
namespace {

using internal::ChoiceTable;
using internal::Chooser;
using testing::HasSubstr;

std::vector<nlohmann::json> objects_of(const std::string& out) {
  std::vector<nlohmann::json> all;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

// A candidate of a line of JSON.
void expect_sound(const nlohmann::json& each, const nlohmann::json& last) {
  const std::size_t ranks = last["ranks"];
  EXPECT_GE(each["us"], 0);
  EXPECT_LE(each["peers"], ranks - 1);
  EXPECT_LE(each["ring_bytes"], last["lanes"].get<std::size_t>() * last["ring_bytes_each"].get<std::size_t>());
  EXPECT_LE(each["bytes_across_packages"], each["bytes_across_caches"]);
  EXPECT_LE(each["combining_ranks"], ranks);
  if (ranks <= 8) {
    EXPECT_EQ(each["bytes_across_caches"], 0);
    EXPECT_EQ(each["groups"], "");
  }
}

TEST(ExplainMachine, HoldsForEveryCollectiveAndNumberOfRanks) {
  const ChoiceTable& table = ChoiceTable::built_in();
  for (const CollectiveTraits& traits : kCollectives)
    for (const int ranks : {1, 2, 8, 63, 64})
      for (const std::size_t bytes : {std::size_t{8}, std::size_t{64} << 10}) {
        if (traits.collective == Collective::transfer) continue;  // it has two ranks
        SCOPED_TRACE(std::string(traits.name) + " of " + std::to_string(bytes) + " by " + std::to_string(ranks));
        const Question question{traits.collective, Layout::of(ranks), traits.has_bytes() ? bytes : 0};
        const PlacedRanks placed = placed_on(kTwoSockets, ranks);
        const auto all = objects_of(explain_machine_json(question, placed, table, "t"));
        const auto& last = all.back();
        EXPECT_EQ(last["chosen"],
                  to_string(Chooser(table, ranks, 1).choose(traits.collective, question.bytes, Order::canonical)));
        EXPECT_EQ(last["lanes"], ranks * (ranks - 1));
        EXPECT_EQ(last["parts"].size(), static_cast<std::size_t>(ranks + 7) / 8);
        EXPECT_EQ(last["links"][0]["pairs"].get<int>() + last["links"][1]["pairs"].get<int>() +
                      last["links"][2]["pairs"].get<int>(),
                  ranks * (ranks - 1) / 2);
        bool has_choice = false;
        for (std::size_t i = 0; i + 1 < all.size(); ++i) {
          if (all[i]["allowed"]) expect_sound(all[i], last);
          has_choice |= all[i]["algorithm"] == last["chosen"] && all[i]["groups"] == "";
        }
        EXPECT_TRUE(has_choice);
        std::istringstream text(explain_machine(question, placed, table, "t"));
        for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 120u) << line;
      }
}

TEST(ExplainMachine, ShowsWhereRanksAreAndWhatIsCheapest) {
  const Result said = shell("$TUTTI plan --explain all_reduce -n 64 --topology " + kTwoSockets);
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("64 cores, 64 processors"));
  EXPECT_THAT(said.out, HasSubstr("\n  8-15                 0            0  L3 1 of 32M\n"));
  EXPECT_THAT(said.out, HasSubstr("\n  56-63                1            1  L3 7 of 32M\n"));
  EXPECT_THAT(said.out, HasSubstr("same package, no shared cache    768 "));
  EXPECT_THAT(said.out, HasSubstr("assumed: 2 times the line above"));
  EXPECT_THAT(said.out, HasSubstr("sliced_tree, by rule 11 of the built-in table:\n"));
  EXPECT_THAT(said.out, HasSubstr("\n* sliced_tree "));
  EXPECT_THAT(said.out, HasSubstr("the cheapest if groups of ranks were hosts   hierarchical by L3 cache"));
  EXPECT_THAT(said.out, HasSubstr("4032 lanes:\n    1008M of rings"));
  const Result drawn = shell("$TUTTI plan --explain all_reduce -n 64 --topology 'package:2 numa:1 l3:4 core:8 pu:1'");
  EXPECT_EQ(drawn.status, 0) << drawn.err;
  EXPECT_THAT(drawn.out, HasSubstr("hierarchical by L3 cache")) << "a description is as good as a file";
}

TEST(ExplainMachine, LeavesTheChoiceToTheTable) {
  const TableFile file("tutti table 1\nrule all_reduce * one * canonical binomial_tree *\n");
  const std::string command = "$TUTTI plan --explain all_reduce -n 64 --bytes 1M --json --table " + file.path();
  const auto with = objects_of(shell(command + " --topology " + kTwoSockets).out).back();
  const auto without = objects_of(shell(command).out).back();
  EXPECT_EQ(with["chosen"], "binomial_tree");
  EXPECT_EQ(with["chosen"], without["chosen"]);
  EXPECT_EQ(with["table"], without["table"]);
}

TEST(ExplainMachine, SaysWhatIsWrongWithItsInput) {
  const TableFile no_machine("tutti table 1\n");
  const auto refused = [](const std::string& words, const std::string& why) {
    const Result said = shell("$TUTTI plan " + words);
    EXPECT_EQ(said.status, 2) << words;
    EXPECT_EQ(said.out, "") << words;
    EXPECT_THAT(said.err, HasSubstr(why)) << words;
  };
  const std::string call = "--explain all_reduce -n 64 --topology ";
  refused("--explain all_reduce -n 65 --topology " + kTwoSockets, "65 ranks are more than the 64 processors of");
  refused("--explain all_reduce -n 65 --topology " + kTwoSockets, "they take turns");
  refused(call + "/no/such/file", "there is no file /no/such/file");
  refused(call + no_machine.path(), no_machine.path() + ": hwloc cannot read this topology");
  refused(call + "'package:2 wheel:3'", "\"package:2 l3:4 core:8 pu:1\"");
  refused(call + "/", "/ is not a file");
  refused(call + kTwoSockets + " --hosts 2", "--topology is of one machine");
  refused(call + kTwoSockets + " --one-machine", "--topology is of one machine");
  refused("two_shot -n 4 --topology " + kTwoSockets, "--topology goes with --explain");
}

}  // namespace
}  // namespace tutti::internal::tools
