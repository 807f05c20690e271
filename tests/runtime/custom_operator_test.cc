// Operators of the caller's own: the canonical tree decides what meets what, and nothing that a function does hangs
// the ranks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <stdexcept>

#include "brief.h"
#include "reduce/element.h"
#include "runtime/conformance.h"
#include "runtime/premul.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class CustomOperatorCalls : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Over, CustomOperatorCalls, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

// Neither commutative nor associative, in arithmetic that wraps around: the result tells the tree.
std::uint32_t mixed(std::uint32_t left, std::uint32_t right) { return left * 3 + (right ^ 0x9e3779b9) * 5 + 1; }
// The same of floats, of small numbers.
float leaning(float left, float right) { return left / 2 - right; }

template <class T>
CombineFunction each(T (*function)(T, T)) {
  return [function](const void* left, const void* right, void* out, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      static_cast<T*>(out)[i] = function(static_cast<const T*>(left)[i], static_cast<const T*>(right)[i]);
  };
}

// T[lo, hi) of the canonical order, by its definition.
template <class T>
T tree(T (*function)(T, T), const std::function<T(int)>& leaf, int lo, int hi) {
  if (hi - lo == 1) return leaf(lo);
  int half = 1;
  while (2 * half < hi - lo) half *= 2;
  return function(tree(function, leaf, lo, lo + half), tree(function, leaf, lo + half, hi));
}

std::uint32_t number(int rank, std::size_t i) {
  return static_cast<std::uint32_t>(i) * 2654435761u + static_cast<std::uint32_t>(rank) * 40503u;
}

// Element i of what rank `me` gets.
std::uint32_t expected_at(const Shape& shape, int ranks, int me, std::size_t i) {
  const std::size_t at =
      shape.collective == Collective::reduce_scatter ? static_cast<std::size_t>(me) * shape.count + i : i;
  const int last = shape.collective == Collective::scan             ? me + 1
                   : shape.collective == Collective::exclusive_scan ? me
                                                                    : ranks;
  return tree<std::uint32_t>(
      mixed, [&](int rank) { return number(rank, at); }, 0, last);
}

Work start(Communicator& world, const Shape& it, const void* in, void* out, const Operator& op,
           const CallOptions& how = {}) {
  switch (it.collective) {
    case Collective::all_reduce: return world.start_all_reduce(in, out, it.count, it.dtype, op, how);
    case Collective::reduce: return world.start_reduce(in, out, it.count, it.dtype, op, it.root, how);
    case Collective::scan: return world.start_scan(in, out, it.count, it.dtype, op, how);
    case Collective::exclusive_scan: return world.start_exclusive_scan(in, out, it.count, it.dtype, op, how);
    default: return world.start_reduce_scatter(in, out, it.count, it.dtype, op, how);
  }
}

TEST_P(CustomOperatorCalls, IsAppliedAlongTheCanonicalTreeByEveryAlgorithm) {
  for (const int ranks : kBrief ? std::vector{1, 3} : std::vector{1, 2, 3, 5, 6, 7})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const Operator op = world.make_operator("mixed", each(mixed));
          for (const Collective collective : kCombining)
            for (const Algorithm algorithm : algorithms_of(collective, ranks))
              for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{10'007}}) {
                const Shape shape{collective, count, DType::uint32, Op::custom, ranks - 1};
                std::vector<std::uint32_t> in(input_elems(shape, ranks, world.rank()));
                for (std::size_t i = 0; i < in.size(); ++i) in[i] = number(world.rank(), i);
                std::vector<std::uint32_t> out(output_elems(shape, ranks, world.rank())), want(out.size());
                for (std::size_t i = 0; i < want.size(); ++i) want[i] = expected_at(shape, ranks, world.rank(), i);
                start(world, shape, in.data(), out.data(), op, {.algorithm = algorithm}).wait();
                ASSERT_TRUE(out == want) << name_of(shape, ranks) << ", " << to_string(algorithm);
              }
        },
        GetParam());
}

TEST_P(CustomOperatorCalls, GetsShortFloatsAsFloatsAndTheResultIsRoundedOnce) {
  Communicator::run_threads(
      5,
      [](Communicator& world) {
        const Operator op = world.make_operator("leaning", each(leaning));
        const auto leaf = [](int rank) { return 1 + static_cast<float>(rank) / 8; };
        const float all = tree<float>(leaning, leaf, 0, 5);
        for (const std::size_t count : {std::size_t{1}, std::size_t{5001}}) {
          const std::vector<float16> halves(count, narrow<float16>(leaf(world.rank())));
          const std::vector<float8_e4m3> bytes(count, narrow<float8_e4m3>(leaf(world.rank())));
          std::vector<float16> half_out(count);
          std::vector<float8_e4m3> byte_out(count);
          world.all_reduce(halves.data(), half_out.data(), count, DType::float16, op);
          world.all_reduce(bytes.data(), byte_out.data(), count, DType::float8_e4m3, op);
          EXPECT_EQ(half_out, std::vector<float16>(count, narrow<float16>(all)));
          EXPECT_EQ(byte_out, std::vector<float8_e4m3>(count, narrow<float8_e4m3>(all)));
        }
      },
      GetParam());
}

TEST_P(CustomOperatorCalls, ThatThrowsFailsTheCallOnEveryRankInTime) {
  Settings settings;
  settings.transport = GetParam() == "inproc" ? "auto" : GetParam();
  settings.timeout = 20s;
  for (const std::size_t count : {std::size_t{1}, std::size_t{300'000}}) {
    const auto begin = std::chrono::steady_clock::now();
    const auto thrown = outcomes(3, settings, [&](Communicator& world) {
      const CombineFunction throws = [&](const void*, const void*, void*, std::size_t) {
        throw std::runtime_error("no inverse");
      };
      const Operator op = world.make_operator("matrix", throws);
      std::vector<double> values(count, 1);
      world.all_reduce(std::span(values), op);
    });
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::aborted) << error->what();
    }
    EXPECT_TRUE(std::ranges::any_of(thrown, [](const auto& error) {
      return std::string(error->what()).find("the operator \"matrix\" threw: no inverse") != std::string::npos;
    }));
  }
}

TEST_P(CustomOperatorCalls, OfAnotherNameIsAMismatchThatAllHearOfAndNobodySuffersFrom) {
  Communicator::run_threads(
      3,
      [](Communicator& world) {
        try {
          world.make_operator(world.rank() == 1 ? "first" : "second", each(mixed));
          ADD_FAILURE() << "not refused";
        } catch (const Error& error) {
          EXPECT_EQ(error.code, ErrorCode::mismatch);
          const std::string said = error.what();
          EXPECT_TRUE(said.find("\"first\"") != std::string::npos && said.find("\"second\"") != std::string::npos)
              << said;
        }
        const Operator op = world.make_operator("third", each(mixed));
        std::uint32_t value = number(world.rank(), 0);
        world.all_reduce(std::span(&value, 1), op);
        EXPECT_EQ(value, (expected_at({Collective::all_reduce, 1, DType::uint32, Op::custom, 0}, 3, 0, 0)));
      },
      GetParam());
}

TEST_P(CustomOperatorCalls, BesideAnotherOperatorIsAMismatch) {
  Settings settings;
  settings.transport = GetParam() == "inproc" ? "auto" : GetParam();
  const auto thrown = outcomes(2, settings, [](Communicator& world) {
    const Operator first = world.make_operator("first", each(mixed)),
                   second = world.make_operator("second", each(mixed));
    std::uint32_t value = 1;
    world.all_reduce(std::span(&value, 1), world.rank() == 0 ? first : second);
    world.finalize();
  });
  EXPECT_TRUE(
      std::ranges::any_of(thrown, [](const auto& error) { return error && error->code == ErrorCode::mismatch; }));
}

TEST(CustomOperatorArguments, AreCheckedBeforeAnythingIsSent) {
  Communicator::run_threads(2, [](Communicator& world) {
    const auto refused = [](ErrorCode code, const std::string& words, const std::function<void()>& call) {
      try {
        call();
        ADD_FAILURE() << "not refused: " << words;
      } catch (const Error& error) {
        EXPECT_EQ(error.code, code);
        EXPECT_NE(std::string(error.what()).find(words), std::string::npos) << error.what();
      }
    };
    const auto wrong = ErrorCode::invalid_argument;
    refused(wrong, "must have 1 to 63 bytes", [&] { world.make_operator("", each(mixed)); });
    refused(wrong, "must have 1 to 63 bytes", [&] { world.make_operator(std::string(64, 'x'), each(mixed)); });
    refused(wrong, "there is no function", [&] { world.make_operator("none", {}); });
    Communicator part = world.split(0);
    const Operator op = world.make_operator(std::string(63, 'x'), each(mixed));
    std::uint32_t value = 1;
    refused(wrong, "not one of this communicator's", [&] { part.all_reduce(std::span(&value, 1), op); });
    refused(wrong, "not one of this communicator's", [&] { world.all_reduce(std::span(&value, 1), Op::custom); });
    Operator unknown = op;
    ++unknown.number;
    refused(wrong, "is made by Communicator::make_operator()",
            [&] { world.all_reduce(std::span(&value, 1), unknown); });
    world.all_reduce(std::span(&value, 1), op);
    EXPECT_EQ(value, mixed(1, 1));
  });
}

// As many as the documentation says; each keeps its own function.
TEST(CustomOperatorArguments, TwoHundredFitOnACommunicator) {
  Communicator::run_threads(1, [](Communicator& world) {
    std::vector<Operator> made;
    for (int i = 0; i < 200; ++i) made.push_back(world.make_operator(std::to_string(i), each(mixed)));
    EXPECT_THROW(world.make_operator("one more", each(mixed)), Error);
    std::uint32_t value = 7;
    world.all_reduce(std::span(&value, 1), made.back());
    EXPECT_EQ(value, 7u) << "one leaf is not combined with anything";
  });
}

}  // namespace
}  // namespace tutti::internal
