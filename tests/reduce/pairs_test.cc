// element.h, an element at a time, against the CPU's reduce(): every pair of 8-bit integers, and for the other types
// pairs of all that is special, and of random bits. (Every pair of 16-bit floats: exhaustive_test.cc.)
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "reduce/element.h"
#include "reduce/inputs.h"
#include "reduce/reduce.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

template <class T>
class Pairs : public testing::Test {
 protected:
  static std::byte* bytes_of(std::vector<T>& values) { return reinterpret_cast<std::byte*>(values.data()); }

  template <Op op>
  static T expected(T a, T b, std::uint32_t leaves) {
    auto value = combine<op>(widen(a), widen(b));
    if (op == Op::avg) value = average(value, leaves);
    return narrow<T>(value);
  }
  static T expected(Op op, T a, T b, std::uint32_t leaves) {
    switch (op) {
      case Op::sum: return expected<Op::sum>(a, b, leaves);
      case Op::prod: return expected<Op::prod>(a, b, leaves);
      case Op::min: return expected<Op::min>(a, b, leaves);
      case Op::max: return expected<Op::max>(a, b, leaves);
      case Op::avg: return expected<Op::avg>(a, b, leaves);
      default: break;
    }
    if constexpr (std::integral<T>) {
      if (op == Op::band) return static_cast<T>(a & b);
      if (op == Op::bor) return static_cast<T>(a | b);
      if (op == Op::bxor) return static_cast<T>(a ^ b);
    }
    throw std::logic_error("no such operator");
  }

  // a[i] beside b[i], for every operator.
  static void expect_same_bits(std::vector<T> a, std::vector<T> b, std::uint32_t leaves) {
    std::vector<T> got(a.size());
    const ReduceSource sources[] = {{bytes_of(a)}, {bytes_of(b), 1}};
    const ReduceTarget target{bytes_of(got)};
    for_each_instruction_set([&] {
      for (const Op op : ops_of(dtype_of<T>)) {
        reduce({dtype_of<T>, op, true, leaves}, sources, {&target, 1}, a.size());
        for (std::size_t i = 0; i < a.size(); ++i) {
          const auto want = std::bit_cast<BitsOf<T>>(expected(op, a[i], b[i], leaves));
          ASSERT_EQ(std::bit_cast<BitsOf<T>>(got[i]), want)
              << to_string(op) << " of bits " << std::hex << +std::bit_cast<BitsOf<T>>(a[i]) << " and "
              << +std::bit_cast<BitsOf<T>>(b[i]) << " over " << leaves;
        }
      }
    });
  }

  // Zeros, denormals, ones, infinities, NaNs and their neighbours, of either sign; an integer's extremes.
  static std::vector<T> special() {
    std::vector<BitsOf<T>> bits;
    if constexpr (std::integral<T>) {
      for (const std::uint64_t base :
           {std::uint64_t{0}, ~std::uint64_t{0} / 2, std::uint64_t{1} << (8 * sizeof(T) - 1)})
        for (int i = -3; i <= 3; ++i) bits.push_back(static_cast<BitsOf<T>>(base + static_cast<std::uint64_t>(i)));
    } else {
      constexpr int kBits = 8 * sizeof(T), kExponent = sizeof(T) == 8 ? 11 : std::is_same_v<T, float16> ? 5 : 8;
      constexpr int kFraction = kBits - 1 - kExponent;
      const std::uint64_t one = 1, most = (one << kExponent) - 1, half = one << (kFraction - 1);
      for (const std::uint64_t exponent : {std::uint64_t{0}, one, most / 2 - kFraction - 1, most / 2 - kFraction,
                                           most / 2 - 1, most / 2, most / 2 + 1, most - 1, most})
        for (const std::uint64_t fraction :
             {std::uint64_t{0}, one, half - 1, half, half + 1, 2 * half - 2, 2 * half - 1})
          for (const std::uint64_t sign : {0, 1})
            bits.push_back(static_cast<BitsOf<T>>(sign << (kBits - 1) | (exponent & most) << kFraction | fraction));
    }
    std::vector<T> values;
    for (const BitsOf<T> each : bits) values.push_back(std::bit_cast<T>(each));
    return values;
  }
};
using Types = testing::Types<float, double, float16, bfloat16, std::int8_t, std::uint8_t, std::int32_t, std::uint32_t,
                             std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(Pairs, Types);

TYPED_TEST(Pairs, OfSpecialValuesAgree) {
  const std::vector<TypeParam> special = this->special();
  std::vector<TypeParam> a, b;
  for (const TypeParam first : special) {
    a.insert(a.end(), special.size(), first);
    b.insert(b.end(), special.begin(), special.end());
  }
  for (const std::uint32_t leaves : {1u, 2u, 3u, 1000u, 0xffffffffu}) this->expect_same_bits(a, b, leaves);
}

TYPED_TEST(Pairs, OfRandomBitsAgree) {
  std::mt19937_64 random(5);
  for (const Kind kind : {Kind::wild, Kind::tame}) {
    std::vector<TypeParam> a(50000), b(a.size());
    for (auto* values : {&a, &b}) {
      const auto bytes = elements(dtype_of<TypeParam>, false, a.size(), kind, random);
      std::memcpy(values->data(), bytes.data(), bytes.size());
    }
    for (const std::uint32_t leaves : {2u, 3u, 7u, 127u, 65537u}) this->expect_same_bits(a, b, leaves);
  }
}

template <class T>
class ShortPairs : public Pairs<T> {};
using ShortTypes = testing::Types<std::int8_t, std::uint8_t>;
TYPED_TEST_SUITE(ShortPairs, ShortTypes);

TYPED_TEST(ShortPairs, AllAgree) {
  std::vector<TypeParam> a, b;
  for (int i = 0; i < 0x10000; ++i) {
    a.push_back(static_cast<TypeParam>(i));
    b.push_back(static_cast<TypeParam>(i >> 8));
  }
  for (const std::uint32_t leaves : {1u, 2u, 3u, 7u, 127u, 128u, 129u, 255u, 256u, 1u << 31, 0xffffffffu})
    this->expect_same_bits(a, b, leaves);
}

// The table of truth: any byte but 0 is true, and a result is 0 or 1.
TEST(Booleans, AllPairsAgreeWithLogic) {
  std::vector<std::uint8_t> a, b, got(0x10000);
  for (int i = 0; i < 0x10000; ++i) {
    a.push_back(static_cast<std::uint8_t>(i));
    b.push_back(static_cast<std::uint8_t>(i >> 8));
  }
  const auto bytes_of = [](std::vector<std::uint8_t>& values) { return reinterpret_cast<std::byte*>(values.data()); };
  const ReduceSource sources[] = {{bytes_of(a)}, {bytes_of(b), 1}};
  const ReduceTarget target{bytes_of(got)};
  const auto expect = [&](Op op, auto logic) {
    for_each_instruction_set([&] {
      reduce({DType::boolean, op, true}, sources, {&target, 1}, a.size());
      for (std::size_t i = 0; i < a.size(); ++i)
        ASSERT_EQ(got[i], logic(a[i] != 0, b[i] != 0) ? 1 : 0) << to_string(op) << " of " << +a[i] << ", " << +b[i];
    });
  };
  for (const Op op : {Op::sum, Op::max, Op::bor}) expect(op, [](bool x, bool y) { return x || y; });
  for (const Op op : {Op::prod, Op::min, Op::band}) expect(op, [](bool x, bool y) { return x && y; });
  expect(Op::bxor, [](bool x, bool y) { return x != y; });
}

}  // namespace
}  // namespace tutti::internal
