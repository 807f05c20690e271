// premul_sum() through the public API: each rank's own scalar, the products rounded once, the sum in canonical order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "brief.h"
#include "runtime/conformance.h"
#include "runtime/premul.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

class PremulSum : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, PremulSum, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

// In place or not; the input must stay as it is but where the output lies over it.
void expect_products_summed(Communicator& world, const Shape& shape, Algorithm algorithm, bool in_place) {
  const auto input = random_input(world.rank(), input_elems(shape, world.size(), world.rank()), shape.dtype);
  const auto right = expected_premul(shape, world.size(), world.rank());
  const std::size_t shift = in_place ? static_cast<std::size_t>(in_place_shift(shape, world.rank())) : 0;
  auto memory = input;
  std::vector<std::byte> apart(right.size());
  std::byte* const out = in_place ? memory.data() + shift : apart.data();
  start_premul(world, shape, memory.data(), out, {.algorithm = algorithm}).wait();
  auto want = input;
  if (in_place && !right.empty()) std::memcpy(&want[shift], right.data(), right.size());
  ASSERT_TRUE(memory == want && (in_place || apart == right))
      << name_of(shape, world.size()) << ", root " << shape.root << ", " << to_string(algorithm)
      << (in_place ? ", in place" : "") << ", rank " << world.rank();
}

TEST_P(PremulSum, GivesTheCanonicalSumOfTheProducts) {
  for (const int ranks : kBrief ? std::vector{1, 3} : std::vector{1, 2, 3, 4, 5})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          int turn = 0;
          for (const Collective collective : kCombining)
            for (const DType dtype : all_dtypes())
              for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{6}, std::size_t{9001}}) {
                const auto algorithms = algorithms_of(collective, ranks);
                const Algorithm algorithm = algorithms[static_cast<std::size_t>(++turn) % algorithms.size()];
                const bool in_place = (turn + world.rank()) % 2 == 0;  // each rank's own affair
                expect_products_summed(world, {collective, count, dtype, Op::sum, turn % ranks}, algorithm, in_place);
                if (testing::Test::HasFatalFailure()) return;
              }
        },
        GetParam());
}

TEST_P(PremulSum, ByEveryAlgorithmGivesTheSameBits) {
  Communicator::run_threads(
      4,
      [&](Communicator& world) {
        for (const Collective collective : kCombining)
          for (const Algorithm algorithm : algorithms_of(collective, 4))
            for (const bool in_place : {false, true})
              expect_products_summed(world, {collective, kBrief ? 7'001 : 70'001, DType::float32, Op::sum, 3},
                                     algorithm, in_place);
      },
      GetParam());
}

TEST(PremulSumArguments, TheScalarFitsTheElements) {
  Communicator::run_threads(2, [](Communicator& world) {
    std::vector<float> in(3, 1), out(3);
    const auto refused = [&](const std::string& words, DType dtype, const Operator& op) {
      try {
        world.all_reduce(in.data(), out.data(), 3, dtype, op);
        ADD_FAILURE() << "not refused: " << words;
      } catch (const Error& error) {
        EXPECT_EQ(error.code, ErrorCode::invalid_argument);
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    };
    refused("premul_sum needs this rank's scalar", DType::float32, Op::premul_sum);
    refused("is of type float64, the elements of float32", DType::float32, premul_sum(0.5));
    refused("is of type float32, the elements of int32", DType::int32, premul_sum(0.5f));
    refused("is of type float16, the elements of bfloat16", DType::bfloat16, premul_sum(float16{0x3c00}));
    Operator sum(Op::sum);
    sum.scalar = Scalar::of(2.0f);
    refused("the operator sum takes no scalar", DType::float32, sum);
    world.all_reduce(in.data(), out.data(), 3, DType::float32, premul_sum(0.5f));
    EXPECT_EQ(out, std::vector<float>(3, 1.0f));
    EXPECT_EQ(in, std::vector<float>(3, 1.0f));
    world.all_reduce(std::span(in), premul_sum(static_cast<float>(world.rank() + 1)));
    EXPECT_EQ(in, std::vector<float>(3, 3.0f));
  });
}

// Of 16-bit floats the scalar may have either type; the product is rounded before it is added.
TEST(PremulSumArguments, AFloat16ScalarIsTheSameNumberAsAFloat) {
  Communicator::run_threads(1, [](Communicator& world) {
    const float16 in{0x3c01};  // 1 + 2^-10
    float16 by_half{}, by_float{};
    world.all_reduce(&in, &by_half, 1, DType::float16, premul_sum(float16{0x3c01}));
    world.all_reduce(&in, &by_float, 1, DType::float16, premul_sum(0x1.004p0f));
    EXPECT_EQ(by_half.bits, 0x3c02);  // 1 + 2^-9 + 2^-20, rounded
    EXPECT_EQ(by_float, by_half);
  });
}

// The calls before are short and equal: another like them may take a shorter way (src/executor/at_once.h).
TEST_P(PremulSum, WithoutItsScalarIsRefusedAlsoAfterCallsThatHadOne) {
  for (const int ranks : {1, 2, 3})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const double mine = 3;
          double sum = 0;
          const auto call = [&](const Operator& op) { world.all_reduce(&mine, &sum, 1, DType::float64, op); };
          for (int i = 0; i < 20; ++i) call(premul_sum(2.0));
          EXPECT_THROW(call(Operator(Op::premul_sum)), Error);
          call(premul_sum(2.0));
          EXPECT_EQ(sum, 6.0 * ranks);
        },
        GetParam());
}

TEST_P(PremulSum, BesideASumIsAMismatch) {
  Settings settings;
  settings.transport = GetParam() == "inproc" ? "auto" : GetParam();
  const auto thrown = outcomes(2, settings, [](Communicator& world) {
    float value = 1;
    const Operator op = world.rank() == 0 ? Operator(Op::sum) : premul_sum(1.0f);
    world.all_reduce(&value, &value, 1, DType::float32, op);
    world.finalize();
  });
  const auto is_mismatch = [](const auto& error) {
    return error && error->code == ErrorCode::mismatch &&
           std::string(error->what()).find("premul_sum") != std::string::npos;
  };
  EXPECT_TRUE(std::ranges::any_of(thrown, is_mismatch));
}

}  // namespace
}  // namespace tutti::internal
