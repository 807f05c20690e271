#include "reduce/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <utility>

#include "reduce/half_oracle.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

template <class T>
void expect_exact_widening(Format format) {
  for (std::uint32_t bits = 0; bits < format.values(); ++bits) {
    const float widened = widen(T{static_cast<BitsOf<T>>(bits)});
    const double expected = value_of(format, bits);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widened)) << std::hex << bits;
      ASSERT_EQ(narrow<T>(widened).bits, kCanonicalNan<T>) << std::hex << bits;
    } else {
      ASSERT_EQ(static_cast<double>(widened), expected) << std::hex << bits;
      ASSERT_EQ(std::signbit(widened), std::signbit(expected)) << std::hex << bits;
      ASSERT_EQ(narrow<T>(widened).bits, bits) << std::hex << bits;
    }
  }
}

template <class T>
void expect_nearest(Format format) {
  for (std::uint32_t high = 0; high < 0x10000; ++high) {
    for (const std::uint32_t low : {0x0000u, 0x0001u, 0x0fffu, 0x1000u, 0x1001u, 0x1fffu, 0x2000u, 0x3000u, 0x7fffu,
                                    0x8000u, 0x8001u, 0xb000u, 0xc000u, 0xcfffu, 0xd000u, 0xd001u, 0xf000u, 0xffffu}) {
      const auto value = std::bit_cast<float>(high << 16 | low);
      ASSERT_EQ(narrow<T>(value).bits, bits_of_nearest(format, value)) << std::hex << (high << 16 | low);
    }
  }
}

TEST(Float16, WidensEveryValueExactlyAndBack) { expect_exact_widening<float16>(kFloat16); }
TEST(Bfloat16, WidensEveryValueExactlyAndBack) { expect_exact_widening<bfloat16>(kBfloat16); }
TEST(Float8E4m3, WidensEveryValueExactlyAndBack) { expect_exact_widening<float8_e4m3>(kFloat8E4m3); }
TEST(Float8E5m2, WidensEveryValueExactlyAndBack) { expect_exact_widening<float8_e5m2>(kFloat8E5m2); }
TEST(Float16, NarrowsToTheNearestTiesToEven) { expect_nearest<float16>(kFloat16); }
TEST(Bfloat16, NarrowsToTheNearestTiesToEven) { expect_nearest<bfloat16>(kBfloat16); }
TEST(Float8E4m3, NarrowsToTheNearestTiesToEven) { expect_nearest<float8_e4m3>(kFloat8E4m3); }
TEST(Float8E5m2, NarrowsToTheNearestTiesToEven) { expect_nearest<float8_e5m2>(kFloat8E5m2); }

// Numbers of the OFP8 specification, and what its conversion that does not saturate gives.
TEST(Float8, HasTheNumbersOfItsSpecification) {
  static_assert(widen(float8_e4m3{0x7e}) == 448 && widen(float8_e4m3{0x08}) == 0x1p-6f);
  static_assert(widen(float8_e4m3{0x01}) == 0x1p-9f && widen(float8_e4m3{0xb8}) == -1);
  static_assert(widen(float8_e5m2{0x7b}) == 57344 && widen(float8_e5m2{0x04}) == 0x1p-14f);
  static_assert(widen(float8_e5m2{0x01}) == 0x1p-16f && widen(float8_e5m2{0xbc}) == -1);
  static_assert(narrow<float8_e4m3>(464).bits == 0x7e && narrow<float8_e4m3>(465).bits == 0x7f);
  static_assert(narrow<float8_e4m3>(-1e9f).bits == 0x7f);
  static_assert(narrow<float8_e5m2>(61439).bits == 0x7b && narrow<float8_e5m2>(61440).bits == 0x7c);
  static_assert(narrow<float8_e5m2>(-1e9f).bits == 0xfc);
}

template <class T>
class FloatingOperators : public testing::Test {};
using FloatingTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(FloatingOperators, FloatingTypes);

TYPED_TEST(FloatingOperators, NanWinsFromEitherSide) {
  const TypeParam nan = std::numeric_limits<TypeParam>::quiet_NaN(),
                  infinity = std::numeric_limits<TypeParam>::infinity();
  for (const TypeParam other : {TypeParam{-infinity}, TypeParam{0}, TypeParam{1}, infinity, -nan}) {
    EXPECT_TRUE(std::isnan(combine<Op::min>(nan, other)) && std::isnan(combine<Op::min>(other, nan)));
    EXPECT_TRUE(std::isnan(combine<Op::max>(nan, other)) && std::isnan(combine<Op::max>(other, nan)));
    EXPECT_TRUE(std::isnan(combine<Op::sum>(nan, other)) && std::isnan(combine<Op::prod>(other, nan)));
  }
}

TYPED_TEST(FloatingOperators, NegativeZeroIsLess) {
  const TypeParam zero = 0, minus_zero = -zero;
  for (const auto& [a, b] : {std::pair(zero, minus_zero), std::pair(minus_zero, zero)}) {
    EXPECT_TRUE(std::signbit(combine<Op::min>(a, b)));
    EXPECT_FALSE(std::signbit(combine<Op::max>(a, b)));
  }
  EXPECT_TRUE(std::signbit(combine<Op::max>(minus_zero, minus_zero)));
}

TYPED_TEST(FloatingOperators, OrderNumbers) {
  for (const auto& [low, high] : {std::pair<TypeParam, TypeParam>(-2, 1), {-2, -1}, {1, 2}}) {
    EXPECT_EQ(combine<Op::min>(low, high), low);
    EXPECT_EQ(combine<Op::min>(high, low), low);
    EXPECT_EQ(combine<Op::max>(low, high), high);
    EXPECT_EQ(combine<Op::max>(high, low), high);
  }
}

TYPED_TEST(FloatingOperators, CanonicalNanReplacesEveryOther) {
  using Bits = BitsOf<TypeParam>;
  const auto infinity = std::bit_cast<Bits>(std::numeric_limits<TypeParam>::infinity());
  const Bits sign = Bits{1} << (8 * sizeof(Bits) - 1);
  for (const Bits nan :
       {static_cast<Bits>(infinity | 1), static_cast<Bits>(sign | infinity | 1), static_cast<Bits>(~Bits{0})}) {
    EXPECT_EQ(std::bit_cast<Bits>(canonical(std::bit_cast<TypeParam>(nan))), kCanonicalNan<TypeParam>);
  }
  EXPECT_EQ(std::bit_cast<Bits>(canonical(std::bit_cast<TypeParam>(sign))), sign);
}

TEST(IntegerOperators, WrapAround) {
  static_assert(combine<Op::sum>(std::int8_t{127}, std::int8_t{1}) == -128);
  static_assert(combine<Op::sum>(std::numeric_limits<std::int32_t>::min(), std::int32_t{-1}) == 2147483647);
  static_assert(combine<Op::prod>(std::int64_t{1} << 62, std::int64_t{2}) == std::numeric_limits<std::int64_t>::min());
  static_assert(combine<Op::prod>(std::uint8_t{16}, std::uint8_t{17}) == 16);
  static_assert(combine<Op::min>(std::int8_t{-1}, std::int8_t{1}) == -1);
  static_assert(combine<Op::max>(std::uint8_t{255}, std::uint8_t{1}) == 255);
}

TEST(IntegerOperators, AverageIsTheIntegerQuotient) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 200000; ++round) {
    const auto sum = static_cast<std::int32_t>(random());
    const auto leaves = static_cast<std::uint32_t>(random() >> (32 + random() % 32) | 1);
    ASSERT_EQ(average(sum, leaves), static_cast<std::int64_t>(sum) / leaves) << sum << " / " << leaves;
    const auto multiple = static_cast<std::uint32_t>(static_cast<std::uint32_t>(sum) / leaves * leaves);
    for (const std::uint32_t near : {multiple - 1, multiple, multiple + 1})
      ASSERT_EQ(average(near, leaves), near / leaves);
  }
}

TEST(IntegerOperators, AverageTruncatesTowardZero) {
  static_assert(average(std::int8_t{-7}, 2) == -3);
  static_assert(average(std::int32_t{7}, 2) == 3);
  static_assert(average(std::int8_t{-128}, 200) == 0);
  static_assert(average(std::numeric_limits<std::int32_t>::min(), 4294967295u) == 0);
  static_assert(average(std::uint32_t{4294967294}, 4294967295u) == 0 &&
                average(std::uint32_t{4294967295}, 4294967295u) == 1);
  static_assert(average(std::uint8_t{255}, 2) == 127);
  static_assert(average(std::uint64_t{0xffffffffffffffff}, 4294967295u) == 4294967297u);
  static_assert(average(std::numeric_limits<std::int64_t>::min(), 1) == std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace tutti::internal
