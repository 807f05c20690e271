// 16-bit floats exhaustively: every value through every path of one source, and beside a few hundred others.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "brief.h"
#include "reduce/inputs.h"
#include "reduce/reduce.h"
#include "reduce/reference.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

std::vector<std::uint16_t> every_value() {
  std::vector<std::uint16_t> values(0x10000);
  std::iota(values.begin(), values.end(), std::uint16_t{0});
  return values;
}

class HalfFloats : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Types, HalfFloats, testing::Values(DType::float16, DType::bfloat16),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(HalfFloats, EveryValueAloneAgrees) {
  std::vector<std::uint16_t> in = every_value(), out(in.size()), expected(in.size());
  std::vector<float> out_partial(in.size()), expected_partial(in.size());
  const ReduceSource source{bytes_of(in)};
  const ReduceTarget targets[] = {{bytes_of(out)}, {bytes_of(out_partial), true}};
  const ReduceTarget expected_targets[] = {{bytes_of(expected)}, {bytes_of(expected_partial), true}};
  for_each_instruction_set([&] {
    for (const std::uint32_t leaves : {1u, 3u, 7u}) {
      const ReduceSpec spec{GetParam(), Op::avg, true, leaves};
      reduce(spec, {&source, 1}, targets, in.size());
      reduce_reference(spec, {&source, 1}, expected_targets, in.size());
      ASSERT_EQ(out, expected);
      ASSERT_TRUE(std::equal(out_partial.begin(), out_partial.end(), expected_partial.begin(), [](float a, float b) {
        return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
      }));
    }
  });
}

// Each float32 whose upper half is any, and whose lower half decides the rounding.
TEST_P(HalfFloats, EveryRoundingAgrees) {
  const std::uint32_t lows[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x1fff,
                                0x3000, 0x7fff, 0x8000, 0x8001, 0xf000, 0xffff};
  std::vector<std::uint32_t> in;
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : lows) in.push_back(high << 16 | low);
  }
  std::vector<std::uint16_t> out(in.size()), expected(in.size());
  const ReduceSource source{bytes_of(in), 0, true};
  const ReduceTarget target{bytes_of(out)}, expected_target{bytes_of(expected)};
  const ReduceSpec spec{GetParam(), Op::sum, true};
  reduce_reference(spec, {&source, 1}, {&expected_target, 1}, in.size());
  for_each_instruction_set([&] {
    std::fill(out.begin(), out.end(), 0);
    reduce(spec, {&source, 1}, {&target, 1}, in.size());
    ASSERT_EQ(out, expected);
  });
}

// An odd stride meets every exponent, and both signs, with many fractions. (exhaustive_test.cc takes them all.)
TEST_P(HalfFloats, EveryValueBesideHundredsOfOthersAgrees) {
  std::vector<std::uint16_t> a = every_value(), b(a.size()), out(a.size()), expected(a.size());
  const ReduceSource sources[] = {{bytes_of(a)}, {bytes_of(b), 1}};
  const ReduceTarget target{bytes_of(out)}, expected_target{bytes_of(expected)};
  for (std::uint32_t second = 0; second < 0x10000; second += kBrief ? 3671 : 367) {
    std::fill(b.begin(), b.end(), static_cast<std::uint16_t>(second));
    for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
      reduce({GetParam(), op, true}, sources, {&target, 1}, a.size());
      reduce_reference({GetParam(), op, true}, sources, {&expected_target, 1}, a.size());
      ASSERT_EQ(out, expected) << to_string(op) << " with " << std::hex << second;
    }
  }
}

TEST_P(HalfFloats, SpecialValuesBesideEachOtherAgree) {
  std::vector<std::uint16_t> special;
  for (const std::uint16_t magnitude : {0x0000, 0x0001, 0x007f, 0x0080, 0x03ff, 0x0400, 0x3c00, 0x3f80, 0x7bff, 0x7c00,
                                        0x7c01, 0x7e00, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff}) {
    if (!kBrief || magnitude % 2 == 0) special.push_back(magnitude);
    if (!kBrief || magnitude % 2 != 0) special.push_back(magnitude | 0x8000);
  }
  std::vector<std::uint16_t> a = every_value(), b(a.size()), out(a.size()), expected(a.size());
  const ReduceSource forward[] = {{bytes_of(a)}, {bytes_of(b), 1}}, backward[] = {{bytes_of(b)}, {bytes_of(a), 1}};
  const ReduceTarget target{bytes_of(out)}, expected_target{bytes_of(expected)};
  for (const std::uint16_t value : special) {
    std::fill(b.begin(), b.end(), value);
    for (const auto& sources : {std::span(forward), std::span(backward)}) {
      for (const Op op : {Op::sum, Op::prod, Op::min, Op::max}) {
        reduce_reference({GetParam(), op, true}, sources, {&expected_target, 1}, a.size());
        for_each_instruction_set([&] {
          reduce({GetParam(), op, true}, sources, {&target, 1}, a.size());
          ASSERT_EQ(out, expected) << to_string(op) << " with " << std::hex << value;
        });
      }
    }
  }
}

}  // namespace
}  // namespace tutti::internal
