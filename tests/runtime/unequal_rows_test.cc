// Rows of different lengths through the public API, against the plain statement of them (unequal_rows.h).
#include "runtime/unequal_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "brief.h"
#include "runtime/conformance.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

class UnequalRowsTest : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, UnequalRowsTest, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

void put(std::vector<std::byte>& memory, std::size_t at, const PlacedRows& places, const RowsOfBytes& rows,
         std::size_t element) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (!rows[i].empty()) std::memcpy(&memory[at + places.displacements[i] * element], rows[i].data(), rows[i].size());
}

// A rank's input and output in one piece of memory, all of which but the rows of the output must be as it was.
void expect_right_rows(Communicator& world, const RowsShape& shape, const Form& form, std::mt19937_64& random) {
  const int me = world.rank();
  const std::size_t element = size_of(shape.dtype);
  const PlacedRows in = placed(input_rows(shape, me), random);
  const bool exchanges = shape.collective == Collective::all_to_all;
  const PlacedRows out = exchanges && form.in_place ? in : placed(output_rows(shape, me), random);
  // In place, one buffer lies in the other where the rank's own row is.
  const bool is_in_place = form.in_place && !in.counts.empty() && !out.counts.empty();
  const auto own = [&](const PlacedRows& rows) {
    return exchanges || rows.counts.size() < 2 ? 0 : rows.displacements[static_cast<std::size_t>(me)] * element;
  };
  const std::size_t in_at = kGuard + (is_in_place ? own(out) : 0);
  const std::size_t out_at = is_in_place ? kGuard + own(in) : (in_at + in.extent * element + kGuard) / 64 * 64 + 64;
  std::vector<std::byte> memory(std::max(in_at + in.extent * element, out_at + out.extent * element) + kGuard,
                                std::byte{0x5a});
  put(memory, in_at, in, given_rows(shape, me), element);
  auto want = memory;
  put(want, out_at, out, expected_rows(shape, me), element);
  const CallOptions how{.algorithm = form.algorithm};
  form.starts ? start(world, shape, &memory[in_at], in, &memory[out_at], out, how).wait()
              : run(world, shape, &memory[in_at], in, &memory[out_at], out, how);
  ASSERT_TRUE(memory == want) << name_of(shape) << ", " << to_string(form.algorithm)
                              << (form.in_place ? ", in place" : "") << (form.starts ? ", started" : "") << ", rank "
                              << me;
}

std::vector<Algorithm> algorithms_of_unequal_rows(Collective collective, int ranks) {
  std::vector<Algorithm> all = algorithms_of(collective, ranks);
  std::erase_if(all, [&](Algorithm algorithm) {
    const AlgorithmEntry* const entry = find_algorithm(collective, algorithm);
    return entry != nullptr && entry->joins_rows;
  });
  return all;
}

TEST_P(UnequalRowsTest, EveryRowComesWhereItShould) {
  for (int ranks = 1; ranks <= (kBrief ? 4 : 8); ++ranks)
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          std::mt19937_64 random(static_cast<std::uint64_t>(ranks));  // the same on every rank
          std::size_t turn = 0;
          for (const Collective collective : kWithRows)
            for (const Algorithm algorithm : algorithms_of_unequal_rows(collective, ranks))
              for (int i = 0; i < (kBrief ? 4 : 16); ++i, ++turn) {
                const DType dtype = all_dtypes()[turn % all_dtypes().size()];
                const Op drawn = all_ops()[turn / 3 % all_ops().size()];
                const Op op = can_combine(dtype, drawn) ? drawn : Op::sum;
                const bool in_place = i % 2 == 0;
                const RowsShape shape = random_rows(collective, ranks, dtype, op, in_place, random);
                std::mt19937_64 own(random() + static_cast<std::uint64_t>(world.rank()));  // places are each rank's own
                if (!testing::Test::HasFatalFailure())
                  expect_right_rows(world, shape, {algorithm, in_place, i % 4 < 2}, own);
              }
        },
        GetParam());
}

// Each rank but one says the same of each row. What the one says is longer, shorter, or of another row.
TEST_P(UnequalRowsTest, OfWhichTwoRanksSayDifferentLengthsFailOnBoth) {
  for (const Collective collective : kWithRows)
    for (const int ranks : {2, 3, 4})
      for (const int wrong : {0, ranks - 1})
        for (const int by : {-3, -1, 2, 3}) {
          RowsShape shape{collective, DType::int32, Op::sum, wrong == 0 ? ranks - 1 : 0, {}};
          shape.lengths.assign(collective == Collective::all_to_all ? static_cast<std::size_t>(ranks) : 1,
                               std::vector<std::size_t>(static_cast<std::size_t>(ranks), 3));
          Settings settings;
          settings.transport = GetParam() == "inproc" ? "shm" : GetParam();
          settings.timeout = std::chrono::seconds(20);
          const auto thrown = outcomes(ranks, settings, [&](Communicator& world) {
            RowsShape mine = shape;
            if (world.rank() == wrong) {
              // A row that goes to another rank or comes from one.
              const auto other = static_cast<std::size_t>((wrong + 1) % ranks);
              const bool is_own = collective == Collective::gather || collective == Collective::scatter;
              std::size_t& length = mine.lengths[0][is_own ? static_cast<std::size_t>(wrong) : other];
              if (collective == Collective::all_to_all)
                mine.lengths[static_cast<std::size_t>(wrong)][other] += static_cast<std::size_t>(by);
              else
                length += static_cast<std::size_t>(by);
              // As long in all: no tag shows it then.
              if (by == 3 && !is_own && collective != Collective::all_to_all)
                mine.lengths[0][static_cast<std::size_t>(wrong)] -= 3;
            }
            std::mt19937_64 random(1);
            std::vector<std::int32_t> in(100, 1), out(100);
            run(world, mine, in.data(), placed(input_rows(mine, world.rank()), random), out.data(),
                placed(output_rows(mine, world.rank()), random), {});
            world.barrier();
          });
          for (int rank = 0; rank < ranks; ++rank) {
            const auto& error = thrown[static_cast<std::size_t>(rank)];
            ASSERT_TRUE(error && error->code == ErrorCode::mismatch)
                << name_of(shape) << ", rank " << wrong << " says " << by << " more; rank " << rank << ": "
                << (error ? error->what() : "nothing");
          }
        }
}

TEST(UnequalRows, ThatAreNoneAreRefusedAndTheCommunicatorStaysUsable) {
  Communicator::run_threads(3, [](Communicator& world) {
    std::vector<float> in(100), out(100);
    const auto refused = [&](const std::string& words, const std::function<void()>& call) {
      try {
        call();
        ADD_FAILURE() << "not refused: " << words;
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    };
    const std::size_t two[] = {1, 2}, three[] = {5, 5, 5}, other[] = {5, 4, 3}, overlapping[] = {0, 4, 10},
                      large[] = {1, std::size_t{1} << 48, 1}, most[] = {1, (std::size_t{1} << 48) - 1, 1};
    const DType dtype = DType::float32;
    refused("all_gather_v: output has 2 counts for 3 ranks",
            [&] { world.all_gather_v(in.data(), out.data(), {two}, dtype); });
    refused("input has 2 displacements for 3 ranks", [&] {
      world.reduce_scatter_v(in.data(), {three, two}, out.data(), dtype, Op::sum);
    });
    refused("two rows of the output have element 4", [&] {
      world.all_gather_v(in.data(), out.data(), {three, overlapping}, dtype);
    });
    refused("2^48", [&] { world.all_gather_v(in.data(), out.data(), {large}, dtype); });
    refused("2^48", [&] { world.all_gather_v(in.data(), out.data(), {most}, dtype); });
    refused("has 5 elements in the input, and", [&] {
      const std::size_t another[] = {6, 6, 6};
      world.all_to_all_v(in.data(), {three}, out.data(), {another}, dtype);
    });
    refused("in place, the rows of input and output", [&] {
      std::vector<std::size_t> more(3, 6);
      more[static_cast<std::size_t>(world.rank())] = 5;
      world.all_to_all_v(in.data(), {three}, in.data(), {more}, dtype);
    });
    refused("all_gather bruck: sends several rows in one message, so it takes rows of one length only",
            [&] { world.all_gather_v(in.data(), out.data(), {other}, dtype, {.algorithm = Algorithm::bruck}); });
    refused("gather binomial_tree: sends several rows", [&] {
      world.gather_v(in.data(), 5, out.data(), {three}, dtype, 1, {.algorithm = Algorithm::binomial_tree});
    });
    refused("overlap", [&] { world.all_gather_v(out.data() + 1, out.data(), {three}, dtype); });
    refused("root 3 is not a rank", [&] { world.gather_v(in.data(), 5, out.data(), {three}, dtype, 3); });
    if (world.rank() == 0)
      refused("from rank 0 to itself has 4 elements in the input, and 5",
              [&] { world.gather_v(in.data(), 4, out.data(), {other}, dtype, 0); });
    world.barrier();
    world.all_gather_v(in.data(), out.data(), {other}, dtype);
  });
}

}  // namespace
}  // namespace tutti::internal
