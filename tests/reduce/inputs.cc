#define HWY_WANT_AVX3_DL  // as kernel_half.cc
#include "memory/targets.h"
// Highway's headers must find the above first.
#include <gtest/gtest.h>
#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cstring>

#include "reduce/inputs.h"

namespace tutti::internal::reduce_test {
namespace {

constexpr std::size_t kFence = 64;
constexpr std::byte kFenceByte{0xa5};

struct FloatShape {
  int exponent_bits;
  int fraction_bits;
};

std::uint64_t special_float(FloatShape shape, std::mt19937_64& random) {
  const std::uint64_t one = 1, fraction = (one << shape.fraction_bits) - 1;
  const std::uint64_t infinity = ((one << shape.exponent_bits) - 1) << shape.fraction_bits;
  const std::uint64_t quiet = one << (shape.fraction_bits - 1);
  const std::uint64_t sign = (random() & 1) << (shape.exponent_bits + shape.fraction_bits);
  const std::uint64_t bits[] = {0,
                                1,
                                fraction,
                                fraction + 1,
                                infinity,
                                infinity - 1,
                                infinity | quiet,
                                infinity | 1,
                                infinity | quiet | 5,
                                infinity | fraction,
                                quiet,
                                infinity / 2 & ~fraction};
  return sign | bits[random() % std::size(bits)];
}

std::uint64_t element(DType dtype, bool partial, Kind kind, std::mt19937_64& random) {
  if (partial && bytes_of(dtype, true) == 4) dtype = DType::float32;
  const bool special = kind == Kind::wild && random() % 2 == 0;
  // Tame floats lie in (-4, 4): the sign and the fraction are random, the exponent is one of four.
  const auto tame = [&](FloatShape shape) {
    const std::uint64_t bias = (std::uint64_t{1} << (shape.exponent_bits - 1)) - 1;
    const std::uint64_t sign = (random() & 1) << (shape.exponent_bits + shape.fraction_bits);
    return sign | (bias - random() % 4 + 1) << shape.fraction_bits |
           (random() & ((std::uint64_t{1} << shape.fraction_bits) - 1));
  };
  const auto floating = [&](FloatShape shape) {
    return kind == Kind::tame ? tame(shape) : special ? special_float(shape, random) : random();
  };
  switch (dtype) {
    case DType::float32: return floating({8, 23});
    case DType::float64: return floating({11, 52});
    case DType::float16: return floating({5, 10});
    case DType::bfloat16: return floating({8, 7});
    case DType::float8_e4m3: return floating({4, 3});
    case DType::float8_e5m2: return floating({5, 2});
    case DType::boolean: return random() % 2 == 0 ? 0 : random();
    default: {
      const int bits = static_cast<int>(8 * size_of(dtype));
      const std::uint64_t high = std::uint64_t{1} << (bits - 1);
      const std::uint64_t extremes[] = {0, 1, ~std::uint64_t{0}, high, high - 1};
      return special ? extremes[random() % std::size(extremes)] : random();
    }
  }
}

template <class Split>
int join(int lo, int hi, std::vector<std::uint8_t>& joins, const Split& split) {
  if (hi - lo == 1) {
    joins.push_back(0);
    return 0;
  }
  const int middle = split(lo, hi);
  join(lo, middle, joins, split);
  join(middle, hi, joins, split);
  return ++joins.back();
}

}  // namespace

std::size_t bytes_of(DType dtype, bool partial) { return partial ? accumulation_size_of(dtype) : size_of(dtype); }

std::vector<std::byte> elements(DType dtype, bool partial, std::size_t count, Kind kind, std::mt19937_64& random) {
  const std::size_t size = bytes_of(dtype, partial);
  std::vector<std::byte> bytes(count * size);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bits = element(dtype, partial, kind, random);
    std::memcpy(&bytes[i * size], &bits, size);
  }
  return bytes;
}

Fenced::Fenced(std::size_t bytes, std::size_t skew) : storage_(bytes + skew + 3 * kFence, kFenceByte), bytes_(bytes) {
  const auto past = reinterpret_cast<std::uintptr_t>(storage_.data()) % kFence;
  start_ = 2 * kFence - past + skew;
}

bool Fenced::fence_intact() const {
  const auto intact = [](std::byte b) { return b == kFenceByte; };
  return std::all_of(storage_.begin(), storage_.begin() + static_cast<std::ptrdiff_t>(start_), intact) &&
         std::all_of(storage_.begin() + static_cast<std::ptrdiff_t>(start_ + bytes_), storage_.end(), intact);
}

std::vector<std::uint8_t> canonical_joins(int n) {
  std::vector<std::uint8_t> joins;
  join(0, n, joins, [](int lo, int hi) {
    int power = 1;
    while (power * 2 < hi - lo) power *= 2;
    return lo + power;
  });
  return joins;
}

std::vector<std::uint8_t> random_joins(int n, std::mt19937_64& random) {
  std::vector<std::uint8_t> joins;
  join(0, n, joins,
       [&](int lo, int hi) { return lo + 1 + static_cast<int>(random() % static_cast<unsigned>(hi - lo - 1)); });
  return joins;
}

void for_each_instruction_set(const std::function<void()>& body) {
  for (const std::int64_t target : hwy::SupportedAndGeneratedTargets()) {
    SCOPED_TRACE(hwy::TargetName(target));
    // Kernels without a form of their own for AVX3_DL take the next.
    hwy::SetSupportedTargetsForTest(target == HWY_AVX3_DL ? HWY_AVX3_DL | HWY_AVX3 : target);
    body();
  }
  hwy::SetSupportedTargetsForTest(0);
}

}  // namespace tutti::internal::reduce_test
