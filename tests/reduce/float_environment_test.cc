#include <gtest/gtest.h>

#include <cfenv>
#include <optional>

#include "reduce/inputs.h"
#include "reduce/reduce.h"
#include "reduce/reference.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace tutti::internal {
namespace {

using namespace reduce_test;

// What a caller might have set before it calls us: the rounding mode, and where it exists, flushing of denormals.
#if defined(__x86_64__)
using Word = std::uint32_t;
Word read_word() { return _mm_getcsr(); }
void write_word(Word word) { _mm_setcsr(word); }
const std::vector<Word> kHostile{0x9fc0 /* flush, denormals are zero */, 0x5f80 /* up */, 0x3f80 /* down */,
                                 0xffc0 /* all, to zero */};
const Word kIdle = 0x1f80 | 0x3f /* flags raised, which is harmless */;
#else
using Word = int;
Word read_word() { return std::fegetround(); }
void write_word(Word word) { std::fesetround(word); }
const std::vector<Word> kHostile{FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
const Word kIdle = FE_TONEAREST;
#endif

std::vector<std::byte> reduce_under(Word word, DType dtype, Op op, bool hold,
                                    std::vector<std::vector<std::byte>>& inputs, std::size_t count) {
  std::vector<std::byte> out(count * size_of(dtype));
  const ReduceSource sources[] = {{inputs[0].data()}, {inputs[1].data(), 1}, {inputs[2].data(), 1}};
  const ReduceTarget target{out.data()};
  const Word before = read_word();
  write_word(word);
  {
    std::optional<FloatEnvironment> environment;
    if (hold) environment.emplace();
    reduce({dtype, op, true, 3}, sources, {&target, 1}, count);
  }
  const Word after = read_word();
  write_word(before);
  EXPECT_TRUE(!hold || word == kIdle || after == word) << "not put back";
  return out;
}

TEST(FloatEnvironment, HostileControlWordChangesNoBitAndIsPutBack) {
  std::mt19937_64 random(3);
  constexpr std::size_t kCount = 2000;
  for (const DType dtype : {DType::float32, DType::float64, DType::float16, DType::bfloat16}) {
    bool hostile_matters = false;
    for (const Kind kind : {Kind::wild, Kind::tame}) {
      std::vector<std::vector<std::byte>> inputs;
      for (int s = 0; s < 3; ++s) inputs.push_back(elements(dtype, false, kCount, kind, random));
      for (const Op op : {Op::sum, Op::prod, Op::avg}) {
        const auto expected = reduce_under(kIdle, dtype, op, true, inputs, kCount);
        for (const Word word : kHostile) {
          EXPECT_EQ(reduce_under(word, dtype, op, true, inputs, kCount), expected)
              << to_string(dtype) << std::hex << word;
          hostile_matters |= reduce_under(word, dtype, op, false, inputs, kCount) != expected;
        }
      }
    }
    EXPECT_TRUE(hostile_matters) << "the test would not notice a missing FloatEnvironment for " << to_string(dtype);
  }
}

TEST(FloatEnvironment, NestsAndLeavesADefaultWordAlone) {
  const Word before = read_word();
  write_word(kHostile[0]);
  {
    FloatEnvironment outer;
    const Word inside = read_word();
    { FloatEnvironment inner; }
    EXPECT_EQ(read_word(), inside);
  }
  EXPECT_EQ(read_word(), kHostile[0]);
  write_word(kIdle);
  { FloatEnvironment environment; }
  EXPECT_EQ(read_word(), kIdle);
  write_word(before);
}

}  // namespace
}  // namespace tutti::internal
