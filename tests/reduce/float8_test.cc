// 8-bit floats exhaustively: every pair through every operator, and every rounding that the upper half of a float32
// shows, by every instruction set, against the definition (half_oracle.h) and the host's own arithmetic.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "reduce/half_oracle.h"
#include "reduce/inputs.h"
#include "reduce/reduce.h"
#include "reduce/reference.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

float combined(Op op, float a, float b, std::uint32_t leaves) {
  const bool is_min = op == Op::min;
  switch (op) {
    case Op::sum: return a + b;
    case Op::avg: return (a + b) / static_cast<float>(leaves);
    case Op::prod: return a * b;
    default: break;
  }
  if (std::isnan(a) || std::isnan(b)) return NAN;
  if (a == b) return std::signbit(a) == is_min ? a : b;
  return is_min ? std::min(a, b) : std::max(a, b);
}

class Float8s : public testing::TestWithParam<DType> {
 protected:
  const Format format_ = GetParam() == DType::float8_e4m3 ? kFloat8E4m3 : kFloat8E5m2;
};
INSTANTIATE_TEST_SUITE_P(Types, Float8s, testing::Values(DType::float8_e4m3, DType::float8_e5m2),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(Float8s, EveryPairAgreesWithTheDefinition) {
  constexpr std::uint32_t kLeaves = 3;
  std::vector<std::uint8_t> a, b, expected(0x10000), got(0x10000);
  for (int i = 0; i < 0x10000; ++i) {
    a.push_back(static_cast<std::uint8_t>(i));
    b.push_back(static_cast<std::uint8_t>(i >> 8));
  }
  const ReduceSource sources[] = {{bytes_of(a)}, {bytes_of(b), 1}};
  const ReduceTarget target{bytes_of(got)};
  for (const Op op : ops_of(GetParam())) {
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto x = static_cast<float>(value_of(format_, a[i])), y = static_cast<float>(value_of(format_, b[i]));
      expected[i] = static_cast<std::uint8_t>(bits_of_nearest(format_, combined(op, x, y, kLeaves)));
    }
    const ReduceSpec spec{GetParam(), op, true, kLeaves};
    reduce_reference(spec, sources, {&target, 1}, a.size());
    ASSERT_EQ(got, expected) << to_string(op);
    for_each_instruction_set([&] {
      std::ranges::fill(got, std::uint8_t{0});
      reduce(spec, sources, {&target, 1}, a.size());
      ASSERT_EQ(got, expected) << to_string(op);
    });
  }
}

TEST_P(Float8s, EveryRoundingAgreesWithTheDefinition) {
  std::vector<std::uint32_t> in;
  for (std::uint32_t high = 0; high < 0x10000; ++high)
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x8000u, 0xffffu}) in.push_back(high << 16 | low);
  std::vector<std::uint8_t> expected, got(in.size());
  for (const std::uint32_t bits : in)
    expected.push_back(static_cast<std::uint8_t>(bits_of_nearest(format_, std::bit_cast<float>(bits))));
  const ReduceSource source{bytes_of(in), 0, true};
  const ReduceTarget target{bytes_of(got)};
  for_each_instruction_set([&] {
    std::ranges::fill(got, std::uint8_t{0});
    reduce({GetParam(), Op::sum, true}, {&source, 1}, {&target, 1}, in.size());
    ASSERT_EQ(got, expected);
  });
}

// Numbers alone, so that the quick way of rounding is taken: specials are seldom beside each other in the tests above.
TEST_P(Float8s, NumbersThatAreNotTooLargeAgreeWithTheDefinition) {
  std::vector<float> in;
  const auto largest = static_cast<float>(value_of(format_, format_.has_infinity ? 0x7b : 0x7e));
  // Every tie, and what is beside it on either side.
  for (std::uint32_t bits = 0x8000; bits < std::bit_cast<std::uint32_t>(largest); bits += 0x8000)
    for (const std::uint32_t near : {bits - 1, bits, bits + 1})
      for (const std::uint32_t sign : {0u, 0x80000000u}) in.push_back(std::bit_cast<float>(near | sign));
  std::vector<std::uint8_t> expected, got(in.size());
  for (const float value : in) expected.push_back(static_cast<std::uint8_t>(bits_of_nearest(format_, value)));
  const ReduceSource source{bytes_of(in), 0, true};
  const ReduceTarget target{bytes_of(got)};
  for_each_instruction_set([&] {
    reduce({GetParam(), Op::sum, true}, {&source, 1}, {&target, 1}, in.size());
    ASSERT_EQ(got, expected);
  });
}

}  // namespace
}  // namespace tutti::internal
