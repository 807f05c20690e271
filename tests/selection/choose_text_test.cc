#include "selection/choose_text.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <fstream>
#include <random>

#include "collectives/catalogue.h"
#include "selection/table_file.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

const std::string kHead = "tutti table 1\n";

ChoiceTable random_table(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  ChoiceTable table;
  for (std::size_t i = below(20); i > 0; --i) {
    const AlgorithmEntry& entry = catalogue()[below(catalogue().size())];
    table.rules.push_back({.collective = entry.collective,
                           .max_ranks = below(2) ? kAnyRanks : static_cast<int>(below(1000) + 1),
                           .hosts = static_cast<HostCount>(below(3)),
                           .max_bytes = below(2) ? kAnyBytes : below(1 << 30) << below(20),
                           .order = entry.canonical ? static_cast<Order>(below(2)) : Order::any,
                           .algorithm = entry.algorithm,
                           .chunk_bytes = below(2) ? 0 : below(1 << 30) + 1});
  }
  const auto fill = [&](CostCurve& a, CostCurve* b) {
    double bytes = 0;
    a.points.clear();
    if (b != nullptr) b->points.clear();
    for (std::size_t i = below(5) + 1; i > 0; --i) {
      bytes += static_cast<double>(below(1 << 20) + 1);
      a.points.push_back({bytes, static_cast<double>(random()) / 1e7});
      if (b != nullptr) b->points.push_back({bytes, static_cast<double>(random()) / 1e7});
    }
  };
  fill(table.model.local.arrival, &table.model.local.busy);
  fill(table.model.remote.arrival, &table.model.remote.busy);
  fill(table.model.reduce, nullptr);
  table.model.cores = static_cast<int>(below(100));
  table.model.local.switch_us = static_cast<double>(random()) / 1e9;
  return table;
}

TEST(TableText, ComesBackAsItWas) {
  EXPECT_EQ(parse_table(to_text(ChoiceTable::built_in()), "t"), ChoiceTable::built_in());
  for (unsigned seed = 0; seed < 300; ++seed) {
    const ChoiceTable table = random_table(seed);
    const ChoiceTable again = parse_table(to_text(table), "t");
    ASSERT_EQ(again, table) << to_text(table);
    ASSERT_EQ(to_text(again), to_text(table));
    ASSERT_EQ(hash_of(again), hash_of(table));
  }
}

TEST(TableText, CommentsBlanksAndOrderOfParametersAreFree) {
  const ChoiceTable table = parse_table(
      "# mine\n\n" + kHead +
          "cores 2 # two\n\t rule all_reduce\t8 one 2K canonical one_shot *\r\n\nreduce 0 1\nshm 0 1 1\nshm 1K 2 1.5",
      "t");
  ASSERT_EQ(table.rules.size(), 1u);
  EXPECT_EQ(table.rules[0],
            (Rule{.max_ranks = 8, .hosts = HostCount::one, .max_bytes = 2048, .algorithm = Algorithm::one_shot}));
  EXPECT_EQ(table.model.cores, 2);
  EXPECT_EQ(table.model.local.busy.points[1], (CostCurve::Point{1024, 1.5}));
  EXPECT_EQ(table.model.remote, CostModel{}.remote) << "what a table does not say is as built in";
}

TEST(TableText, WhatIsWrongIsNamedWithItsLine) {
  const struct {
    std::string text;
    int line;
    std::string part;
  } kWrong[] = {
      {"", 1, "should begin with \"tutti table 1\""},
      {"\n# nothing\n", 2, "should begin with"},
      {"hello world 1\n", 1, "should begin with"},
      {"tutti table 2\n", 1, "version 2 of the form is not known here; 1 is"},
      {kHead + "rule\n", 2, "rule takes 7 words"},
      {kHead + "\n\nroole all_reduce 8 one 2K canonical one_shot *\n", 4, "roole is not one of"},
      {kHead + "rule all_redcue 8 one 2K canonical one_shot *\n", 2, "no collective all_redcue"},
      {kHead + "rule all_reduce 0 one 2K canonical one_shot *\n", 2, "0 is no number of ranks"},
      {kHead + "rule all_reduce -8 one 2K canonical one_shot *\n", 2, "-8 is no number of ranks"},
      {kHead + "rule all_reduce 8 two 2K canonical one_shot *\n", 2,
       "the hosts are two but should be one, several, shared or *"},
      {kHead + "rule all_reduce 8 one 2Q canonical one_shot *\n", 2, "2Q is no number of bytes"},
      {kHead + "rule all_reduce 8 one 99999999999G canonical one_shot *\n", 2, "is no number of bytes"},
      {kHead + "rule all_reduce 8 one K canonical one_shot *\n", 2, "K is no number of bytes"},
      {kHead + "rule all_reduce 8 one 2K none one_shot *\n", 2, "the order is none but should be canonical or any"},
      {kHead + "rule all_reduce 8 one 2K canonical fastest *\n", 2, "no all_reduce by fastest"},
      {kHead + "rule all_reduce 8 one 2K canonical auto *\n", 2, "no all_reduce by auto"},
      {kHead + "rule barrier 8 one 2K canonical ring *\n", 2, "no barrier by ring"},
      {kHead + "rule all_reduce 8 one 2K canonical ring *\n", 2, "ring cannot keep the canonical order"},
      {kHead + "rule all_reduce 8 one 2K canonical one_shot 0\n", 2, "a chunk has at least one byte"},
      {kHead + "shm 4K 1\n", 2, "shm takes 3 words"},
      {kHead + "shm 4K 1 x\n", 2, "x is no number of microseconds"},
      {kHead + "shm 4K -1 1\n", 2, "-1 is no number of microseconds"},
      {kHead + "tcp 4K nan 1\n", 2, "nan is no number of microseconds"},
      {kHead + "tcp 4K inf 1\n", 2, "inf is no number of microseconds"},
      {kHead + "tcp 4K 1 1\ntcp 4K 2 2\n", 3, "4K bytes are not more than the 4096 of the point before"},
      {kHead + "shm 18446744073709551615 1 1\n", 2, "more than a message has"},
      {kHead + "reduce 4K 1\nreduce 1K 2\n", 3, "1K bytes are not more"},
      {kHead + "cores many\n", 2, "many is no number of cores"},
      {kHead + "cores -1\n", 2, "-1 is no number of cores"},
      {kHead + "switch verbs 1\n", 2, "verbs is not shm or tcp"},
      {kHead + "switch 1\n", 2, "switch takes 2 words"},
  };
  for (const auto& [text, line, part] : kWrong) {
    try {
      parse_table(text, "my.table");
      ADD_FAILURE() << "taken: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument);
      const std::string what = error.what();
      EXPECT_EQ(what.find("my.table, line " + std::to_string(line) + ": "), 0u) << what;
      EXPECT_NE(what.find(part), std::string::npos) << what;
    }
  }
}

TEST(TableText, NoBytesBreakIt) {
  std::mt19937 random(7);
  const std::string good = to_text(random_table(3));
  for (int i = 0; i < 3000; ++i) {
    std::string text = good;
    for (int changes = 1 + static_cast<int>(random() % 4); changes > 0; --changes)
      text[random() % text.size()] = static_cast<char>(random());
    try {
      const ChoiceTable table = parse_table(text, "t");
      EXPECT_EQ(parse_table(to_text(table), "t"), table);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("t, line "), 0u);
    }
  }
}

TEST(TableHash, IsTheSameEverywhereAndTellsTablesApart) {
  const std::string text = kHead + "rule barrier * * * canonical dissemination *\n";
  const std::uint64_t hash = hash_of(parse_table(text, "t"));
  EXPECT_EQ(hash, hash_of(parse_table("# with words\n" + text + "\n# more", "other")));
  EXPECT_EQ(hash, 0xe005d4f0250289acu) << std::hex << hash;
  EXPECT_NE(hash, hash_of(ChoiceTable::built_in()));
  EXPECT_NE(hash, hash_of(parse_table(kHead + "rule barrier * * 1 canonical dissemination *\n", "t")));
}

TEST(SizeText, IsShortAndExact) {
  EXPECT_EQ(size_text(0), "0");
  EXPECT_EQ(size_text(1023), "1023");
  EXPECT_EQ(size_text(1024), "1K");
  EXPECT_EQ(size_text(3 << 20), "3M");
  EXPECT_EQ(size_text(std::size_t{5} << 30), "5G");
}

TEST(TableFile, IsReadWholeAndWhatIsNoFileIsNamed) {
  const TableFile file("some text\n");
  EXPECT_EQ(read_table_file(file.path()), "some text\n");
  const auto error_text = [](const std::string& path) -> std::string {
    try {
      read_table_file(path);
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::invalid_argument);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_text("/no/such/file"), "the table /no/such/file cannot be read: No such file or directory");
  EXPECT_EQ(error_text("/tmp"), "the table /tmp is not a regular file");
  EXPECT_EQ(error_text("/dev/zero"), "the table /dev/zero is not a regular file");
  const std::string pipe = file.path() + ".pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(error_text(pipe), "the table " + pipe + " is not a regular file");
  std::remove(pipe.c_str());
  const TableFile large(std::string(kMaxTableBytes + 1, '#')), full(std::string(kMaxTableBytes, '#'));
  EXPECT_EQ(error_text(large.path()), "the table " + large.path() + " has more than 65536 bytes");
  EXPECT_EQ(error_text(full.path()), "");
}

}  // namespace
}  // namespace tutti::internal
