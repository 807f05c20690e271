// One table a job, rank 0's; and that no table changes a bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "brief.h"
#include "collectives/catalogue.h"
#include "runtime/ranks.h"
#include "selection/choose_text.h"
#include "selection/table_file.h"

namespace tutti::internal {
namespace {

using internal::ChoiceTable;
using internal::Rule;

// Ranks of one job as threads, each with the file of a table of its own. What they threw.
std::vector<std::optional<Error>> join_with(const std::vector<std::string>& files, const std::string& transport,
                                            const std::function<void(Communicator&)>& body) {
  std::vector<Settings> by_rank(files.size());
  for (std::size_t r = 0; r < files.size(); ++r) {
    by_rank[r].transport = transport;
    by_rank[r].table = files[r];
  }
  return outcomes(std::move(by_rank), body);
}

TEST(OneTable, OfRank0IsThatOfAllRanksAndOfWhatIsSplitOffThem) {
  const std::string text = "tutti table 1\nrule all_reduce * * * canonical binomial_tree 1K\n";
  const TableFile rank_0(text), other("tutti table 1\nrule all_reduce * * * canonical two_shot *\n"), bad("nonsense");
  const std::string expected = to_text(internal::parse_table(text, "t"));
  for (const std::string transport : {"auto", "tcp"}) {
    const auto thrown =
        join_with({rank_0.path(), other.path(), bad.path(), "/no/such/file", ""}, transport, [&](Communicator& world) {
          EXPECT_EQ(world.table(), expected);
          EXPECT_EQ(world.choose(Collective::all_reduce, 2, DType::float32), Algorithm::binomial_tree);
          Communicator part = world.split(world.rank() % 2);
          EXPECT_EQ(part.table(), expected);
          EXPECT_EQ(part.choose(Collective::all_reduce, 2, DType::float32), Algorithm::binomial_tree);
          std::vector<float> ones(100'000, 1);
          world.all_reduce(std::span(ones), Op::sum);
          EXPECT_EQ(ones.back(), 5);
        });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
}

TEST(OneTable, IsTheBuiltInOneIfRank0NamesNone) {
  const TableFile other("tutti table 1\nrule all_reduce * * * canonical binomial_tree 1K\n");
  for (const auto& error : join_with({"", other.path(), other.path()}, "auto", [](Communicator& world) {
         EXPECT_EQ(world.table(), to_text(ChoiceTable::built_in()));
       }))
    EXPECT_FALSE(error) << error->what();
}

TEST(OneTable, ThatIsWrongFailsTheJoinOnEveryRankInTheSameWords) {
  const TableFile malformed("tutti table 1\n\nrule all_reduce 8 one 2K canonical ring *\n"),
      large(std::string(internal::kMaxTableBytes + 1, '\n'));
  const std::pair<std::string, std::string> kWrong[] = {
      {malformed.path(), malformed.path() + ", line 3: ring cannot keep the canonical order on more than 2 ranks"},
      {large.path(), "the table " + large.path() + " has more than 65536 bytes"},
      {"/no/such/file", "the table /no/such/file cannot be read: No such file"}};
  for (const auto& [path, words] : kWrong) {
    const auto start = std::chrono::steady_clock::now();
    const auto thrown = join_with({path, "", "", ""}, "auto", [](Communicator&) { ADD_FAILURE() << "it joined"; });
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
    for (std::size_t r = 0; r < thrown.size(); ++r) {
      ASSERT_TRUE(thrown[r]) << r;
      EXPECT_EQ(thrown[r]->code, ErrorCode::invalid_argument);
      EXPECT_NE(std::string(thrown[r]->what()).find("rank " + std::to_string(r) + " could not join: " + words),
                std::string::npos)
          << thrown[r]->what();
    }
  }
  const auto alone = join_with({malformed.path()}, "auto", [](Communicator&) { ADD_FAILURE() << "it joined"; });
  EXPECT_TRUE(alone[0]);
}

TEST(OneTable, OpensWhatCannotKeepTheOrderToThoseAloneThatAllowAny) {
  const TableFile file("tutti table 1\nrule all_reduce * * * any ring 64\n");
  for (const auto& error : join_with({file.path(), "", ""}, "auto", [](Communicator& world) {
         EXPECT_EQ(world.choose(Collective::all_reduce, 999, DType::float32, Order::any), Algorithm::ring);
         EXPECT_NE(world.choose(Collective::all_reduce, 999, DType::float32), Algorithm::ring);
         std::vector<std::int64_t> values(999, 7);
         world.all_reduce(std::span(values), Op::sum, {.order = Order::any});
         EXPECT_EQ(values, std::vector<std::int64_t>(999, 21));
         const auto expected = expected_reduction(3, 999, DType::float32, Op::sum);
         auto mine = random_input(world.rank(), 999, DType::float32);
         world.all_reduce(mine.data(), mine.data(), 999, DType::float32, Op::sum);
         EXPECT_EQ(mine, expected);
       }))
    EXPECT_FALSE(error) << error->what();
}

// The built-in table with every rule turned to the next algorithm of its collective, `shift` places on, in chunks that
// nobody would choose.
std::string inverted(int shift) {
  ChoiceTable table = ChoiceTable::built_in();
  for (Rule& rule : table.rules) {
    std::vector<Algorithm> all;
    for (const AlgorithmEntry& entry : catalogue())
      if (entry.collective == rule.collective && entry.canonical) all.push_back(entry.algorithm);
    const auto now = std::ranges::find(all, rule.algorithm) - all.begin();
    rule.algorithm = all[(static_cast<std::size_t>(now) + static_cast<std::size_t>(shift)) % all.size()];
    rule.chunk_bytes = 100 * static_cast<std::size_t>(shift) + 28;
  }
  return to_text(table);
}

void expect_canonical_bits(Communicator& world) {
  const auto n = static_cast<std::size_t>(world.size()), me = static_cast<std::size_t>(world.rank());
  for (const DType dtype : {DType::float32, DType::bfloat16})
    for (const std::size_t part : {1, 130, 9'001}) {
      const std::size_t count = part * n, bytes = part * size_of(dtype);
      const auto expected = expected_reduction(world.size(), count, dtype, Op::sum);
      const auto mine = random_input(world.rank(), count, dtype);
      std::vector<std::byte> sum(mine.size()), own(bytes), all(mine.size());
      world.all_reduce(mine.data(), sum.data(), count, dtype, Op::sum);
      ASSERT_EQ(sum, expected);
      world.reduce_scatter(mine.data(), own.data(), part, dtype, Op::sum);
      ASSERT_TRUE(std::equal(own.begin(), own.end(), expected.begin() + static_cast<std::ptrdiff_t>(me * bytes)));
      world.all_gather(own.data(), all.data(), part, dtype);
      ASSERT_EQ(all, expected);
      auto told = mine;
      world.broadcast(told.data(), count, dtype, world.size() - 1);
      ASSERT_EQ(told, random_input(world.size() - 1, count, dtype));
      world.barrier();
    }
}

TEST(OneTable, HoweverPerverseChangesNoBit) {
  for (int shift = 0; shift < (kBrief ? 2 : 5); ++shift) {
    const TableFile file(inverted(shift));
    for (const std::string transport : {"auto", "tcp"})
      for (const auto& error : join_with({file.path(), "", "", "", ""}, transport, [&](Communicator& world) {
             EXPECT_EQ(world.table(), inverted(shift));
             expect_canonical_bits(world);
           }))
        ASSERT_FALSE(error) << error->what();
  }
}

}  // namespace
}  // namespace tutti::internal
