#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "collectives/catalogue.h"
#include "plan/watch.h"
#include "schedule/text.h"
#include "tools/shell.h"

namespace tutti::internal::tools {
namespace {

using testing::HasSubstr;

nlohmann::json last_object(const std::string& out) {
  std::istringstream stream(out);
  std::string line, last;
  while (std::getline(stream, line)) last = line;
  return nlohmann::json::parse(last);
}

TEST(Plan, PrintsASchedulePerRankThatCanBeReadBack) {
  const Result plan = shell("$TUTTI plan two_shot -n 3");
  EXPECT_EQ(plan.status, 0) << plan.err;
  const auto* entry = find_algorithm(Collective::all_reduce, Algorithm::two_shot);
  EXPECT_EQ(to_text(parse_schedules(plan.out)), to_text(build_all(*entry, Layout::of(3), {})));
}

TEST(Plan, OutputThatCannotBeWrittenIsAFailure) {
  for (const char* command : {"plan ring -n 3", "bench all_reduce -n 2 --sizes 8 --iterations 1 --rounds 1 --json"}) {
    const Result full = shell(std::string("$TUTTI ") + command + " >/dev/full");
    EXPECT_EQ(full.status, 1) << command;
    EXPECT_THAT(full.err, HasSubstr("cannot write the output: No space left on device")) << command;
  }
}

TEST(Plan, PrintsOneRankAlone) {
  const Result plan = shell("$TUTTI plan two_shot -n 3 --rank 1");
  EXPECT_THAT(plan.out, HasSubstr("\nrank 1 of 3"));
  EXPECT_THAT(plan.out, testing::Not(HasSubstr("rank 0 of 3")));
  EXPECT_THAT(plan.out, testing::Not(HasSubstr("rank 2 of 3")));
}

TEST(Plan, SaysWhichOrderItHasProven) {
  const Result tree = shell("$TUTTI plan sliced_tree -n 3 --verify");
  EXPECT_EQ(tree.status, 0);
  EXPECT_THAT(tree.out, HasSubstr("the canonical order: ((0+1)+2)"));
  EXPECT_THAT(shell("$TUTTI plan ring -n 4 --verify").out, HasSubstr("slice 0: (0+((1+2)+3))"));
}

TEST(Plan, ProvesThePlansOfACallToo) {
  EXPECT_THAT(shell("$TUTTI plan two_shot -n 3 --verify --bytes 4K").out,
              HasSubstr("so are the plans of 4096 bytes of float32, whichever of their 6 fused steps are taken early"));
  EXPECT_THAT(shell("$TUTTI plan sliced_tree --leaves 2,1,1 --verify").out, testing::Not(HasSubstr("so are the plans")))
      << "no call has several leaves a rank";
}

TEST(Plan, JsonEndsWithTheProofAndThePrice) {
  const auto object = last_object(shell("$TUTTI plan ring -n 4 --verify --cost --bytes 4K --json").out);
  EXPECT_EQ(object["holds"], true);
  EXPECT_EQ(object["canonical"], false);
  EXPECT_EQ(object["messages"], 24);
  EXPECT_EQ(object["rounds"], 6);
  EXPECT_EQ(object["max_bytes_sent"], 2 * 4096 * 3 / 4);
}

TEST(Plan, SaysWhatCrossesBetweenHosts) {
  const auto cost = [](const std::string& words) {
    return last_object(shell("$TUTTI plan " + words + " --verify --cost --bytes 48K --json").out);
  };
  for (const char* hosts : {"-n 8 --hosts 2", "--hosts 0,0,0,0,1,1,1,1", "--hosts 5,5,5,5,1,1,1,1"}) {
    const auto object = cost(std::string("hierarchical ") + hosts);
    EXPECT_EQ(object["ranks"], 8) << hosts;
    EXPECT_EQ(object["holds"], true) << hosts;
    EXPECT_EQ(object["max_bytes_between_hosts"], 48 * 1024 / 4) << hosts;
    EXPECT_EQ(object["bytes_between_hosts"], 2 * 48 * 1024) << hosts;
  }
  EXPECT_EQ(cost("two_shot -n 8 --hosts 2")["max_bytes_between_hosts"], 48 * 1024);
  EXPECT_EQ(cost("hierarchical --hosts 0,1,0,1,0,1,0,1")["max_bytes_between_hosts"], 48 * 1024 * 5 / 8);
  EXPECT_EQ(cost("hierarchical -n 8")["bytes_between_hosts"], 0);
  EXPECT_THAT(shell("$TUTTI plan hierarchical -n 4 --hosts 2 --cost --bytes 4K").out,
              HasSubstr("between hosts the busiest rank sends 2048 bytes, all ranks together 8192 bytes\n"));
  EXPECT_THAT(shell("$TUTTI plan hierarchical -n 4 --cost").out, testing::Not(HasSubstr("between hosts")));
}

TEST(Plan, FindsTheOneCollectiveOfAnAlgorithm) {
  EXPECT_EQ(last_object(shell("$TUTTI plan dissemination -n 3 --json").out)["collective"], "barrier");
  EXPECT_EQ(last_object(shell("$TUTTI plan ring -n 3 --json").out)["collective"], "all_reduce");
}

TEST(Plan, ListsEveryAlgorithmWithItsCost) {
  const std::string all = shell("$TUTTI plan --list").out, json = shell("$TUTTI plan --list --json").out;
  std::istringstream objects(json);
  for (const AlgorithmEntry& entry : catalogue()) {
    const std::string of_it = shell("$TUTTI plan --list " + std::string(to_string(entry.collective))).out;
    for (const std::string& list : {all, of_it}) {
      std::istringstream lines(list);
      int rows = 0;
      for (std::string line, collective, algorithm; std::getline(lines, line);) {
        std::istringstream(line) >> collective >> algorithm;
        if (collective != to_string(entry.collective) || algorithm != to_string(entry.algorithm)) continue;
        ++rows;
        for (const std::string_view cost : {entry.messages, entry.bytes, entry.rounds})
          EXPECT_THAT(line, HasSubstr(" " + std::string(cost)));
      }
      EXPECT_EQ(rows, 1) << name_of(entry) << " in\n" << list;
    }
    std::string line;
    ASSERT_TRUE(std::getline(objects, line));
    const auto object = nlohmann::json::parse(line);
    EXPECT_EQ(object["algorithm"], to_string(entry.algorithm));
    EXPECT_EQ(object["messages"], entry.messages);
  }
  EXPECT_THAT(shell("$TUTTI plan --list barrier").out, testing::Not(HasSubstr("ring")));
  EXPECT_THAT(shell("$TUTTI plan --list ring").err, HasSubstr("there is no collective ring; --list takes one"));
  EXPECT_THAT(shell("$TUTTI plan").err, HasSubstr("algorithm is required; tutti plan --list prints them all"));
}

TEST(Plan, WhatDoesNotExistIsWrongInput) {
  for (const char* words :
       {"", "--list ring", "no_such_algorithm", "ring --collective no_such", "ring --collective barrier",
        "chain --root 4", "ring --leaves 2,1", "ring --hosts 5", "ring --hosts 0", "ring --hosts 0,x",
        "two_shot --hosts 0,1 --leaves 1,1,1", "ring --rank 4", "ring -n 100000", "ring --bytes many"}) {
    const Result plan = shell(std::string("$TUTTI plan ") + words);
    EXPECT_EQ(plan.status, 2) << words;
    EXPECT_THAT(plan.err, testing::StartsWith("tutti plan: ")) << words;
    EXPECT_EQ(plan.out, "") << words;
  }
}

std::string watched(Collective collective, Algorithm algorithm, int ranks, const Message& message = {}) {
  const AlgorithmEntry& entry = *find_algorithm(collective, algorithm);
  const Layout layout = Layout::of(ranks);
  return watch(build_all(entry, layout, message), layout, {collective, message.root, Order::any});
}

TEST(Watch, RingPassesSlicesRound) {
  const std::string text = watched(Collective::all_reduce, Algorithm::ring, 3);
  EXPECT_THAT(text, HasSubstr("round 1\n"
                              "  0 -> 1  slice 2: 0          1 -> 2  slice 0: 1          2 -> 0  slice 1: 2\n"
                              "            slice 0     slice 1     slice 2\n"
                              "  rank 0    0           0,2         0\n"
                              "  rank 1    1           1           0-1\n"
                              "  rank 2    1-2         2           2\n"));
  EXPECT_THAT(text, HasSubstr("round 4\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("round 5\n")));
}

TEST(Watch, EveryAlgorithmEndsWithAllThatWasAskedFor) {
  for (const AlgorithmEntry& entry : catalogue()) {
    for (const int ranks : {1, 2, 3, 5, 8}) {
      const std::string text = watched(entry.collective, entry.algorithm, ranks, {.root = ranks - 1, .chunks = 2});
      const std::string last_table = text.substr(text.rfind("  rank 0"));
      // "." is nothing held; all leaves are held everywhere after an all-reduce, and known of after a barrier.
      if (entry.collective == Collective::all_gather || entry.collective == Collective::broadcast) {
        EXPECT_THAT(last_table, testing::Not(HasSubstr("."))) << text;
      }
      if (entry.collective != Collective::all_reduce && entry.collective != Collective::barrier) continue;
      std::istringstream lines(last_table);
      for (std::string line; std::getline(lines, line);) {
        std::istringstream cells(line.substr(11));
        for (std::string cell; cells >> cell;) {
          EXPECT_EQ(cell, ranks == 1 ? "0" : "0-" + std::to_string(ranks - 1)) << entry.idea << "\n" << text;
        }
      }
    }
  }
}

TEST(Watch, ChunksFollowEachOtherDownAChain) {
  const std::string text = watched(Collective::broadcast, Algorithm::chain, 3, {.chunks = 2});
  EXPECT_THAT(text, HasSubstr("round 2\n  0 -> 1  slice 0.1: 0        1 -> 2  slice 0.0: 0\n"));
}

}  // namespace
}  // namespace tutti::internal::tools
