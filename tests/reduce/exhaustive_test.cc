// What half_test.cc samples, in full.
#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <vector>

#include "reduce/element.h"
#include "reduce/half_oracle.h"
#include "reduce/inputs.h"
#include "reduce/reduce.h"
#include "reduce/reference.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

TEST(Exhaustive, EveryFloat32NarrowsToTheNearest) {
  constexpr std::uint32_t kBlock = 1u << 16;
  std::vector<std::uint32_t> in(kBlock);
  std::vector<std::uint16_t> half(kBlock), brain(kBlock);
  std::vector<std::uint8_t> e4m3(kBlock), e5m2(kBlock);
  const ReduceSource source{bytes_of(in), 0, true};
  const ReduceTarget to_half{bytes_of(half)}, to_brain{bytes_of(brain)}, to_e4m3{bytes_of(e4m3)},
      to_e5m2{bytes_of(e5m2)};
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    std::iota(in.begin(), in.end(), high << 16);
    reduce({DType::float16, Op::sum, true}, {&source, 1}, {&to_half, 1}, kBlock);
    reduce({DType::bfloat16, Op::sum, true}, {&source, 1}, {&to_brain, 1}, kBlock);
    reduce({DType::float8_e4m3, Op::sum, true}, {&source, 1}, {&to_e4m3, 1}, kBlock);
    reduce({DType::float8_e5m2, Op::sum, true}, {&source, 1}, {&to_e5m2, 1}, kBlock);
    for (std::uint32_t i = 0; i < kBlock; ++i) {
      const auto value = std::bit_cast<float>(in[i]);
      const std::uint32_t half_bits = bits_of_nearest(kFloat16, value), brain_bits = bits_of_nearest(kBfloat16, value);
      ASSERT_TRUE(half[i] == half_bits && narrow<float16>(value).bits == half_bits) << std::hex << in[i];
      ASSERT_TRUE(brain[i] == brain_bits && narrow<bfloat16>(value).bits == brain_bits) << std::hex << in[i];
      ASSERT_EQ(e4m3[i], bits_of_nearest(kFloat8E4m3, value)) << std::hex << in[i];
      ASSERT_EQ(e5m2[i], bits_of_nearest(kFloat8E5m2, value)) << std::hex << in[i];
    }
  }
}

class EveryPair : public testing::TestWithParam<DType> {};
INSTANTIATE_TEST_SUITE_P(Exhaustive, EveryPair, testing::Values(DType::float16, DType::bfloat16),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(EveryPair, AgreesWithTheReference) {
  std::vector<std::uint16_t> a(0x10000), b(a.size()), out(a.size()), expected(a.size());
  std::iota(a.begin(), a.end(), std::uint16_t{0});
  const ReduceSource sources[] = {{bytes_of(a)}, {bytes_of(b), 1}};
  const ReduceTarget target{bytes_of(out)}, expected_target{bytes_of(expected)};
  for (std::uint32_t second = 0; second < 0x10000; ++second) {
    std::fill(b.begin(), b.end(), static_cast<std::uint16_t>(second));
    for (const Op op : ops_of(GetParam())) {
      const ReduceSpec spec{GetParam(), op, true, 3};
      reduce(spec, sources, {&target, 1}, a.size());
      reduce_reference(spec, sources, {&expected_target, 1}, a.size());
      ASSERT_EQ(out, expected) << to_string(op) << " with " << std::hex << second;
    }
  }
}

}  // namespace
}  // namespace tutti::internal
