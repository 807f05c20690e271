// reduce() against reduce_reference(), bit for bit; the reference against recursion and the host's own arithmetic.
#include "reduce/reduce.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "brief.h"
#include "memory/string_copy.h"
#include "reduce/inputs.h"
#include "reduce/reference.h"
#include "tutti/error.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

using namespace reduce_test;

struct Shape {
  std::vector<std::uint8_t> joins;
  std::vector<bool> source_partial;  // as many as joins
  std::vector<bool> target_partial;
  std::size_t count = 0;
  std::size_t skew = 0;         // elements by which every buffer misses alignment
  std::size_t target_skew = 0;  // and each target more than the one before
};

Shape plain(int n, int targets, std::size_t count, std::size_t skew = 0, std::size_t target_skew = 0) {
  return {canonical_joins(n),
          std::vector<bool>(static_cast<std::size_t>(n)),
          std::vector<bool>(static_cast<std::size_t>(targets)),
          count,
          skew,
          target_skew};
}

// Runs both on the same random elements and compares every target byte, and the bytes around.
void expect_same_bits(const ReduceSpec& spec, const Shape& shape, Kind kind, std::mt19937_64& random) {
  std::vector<Fenced> inputs, outputs, expected;
  std::vector<ReduceSource> sources;
  for (std::size_t s = 0; s < shape.joins.size(); ++s) {
    const auto bytes = elements(spec.dtype, shape.source_partial[s], shape.count, kind, random);
    inputs.emplace_back(bytes.size(), shape.skew * bytes_of(spec.dtype, shape.source_partial[s]));
    std::copy(bytes.begin(), bytes.end(), inputs.back().data());
  }
  for (std::size_t s = 0; s < shape.joins.size(); ++s) {
    const bool fetches_to_write = (s + shape.count) % 2 != 0;  // which changes nothing
    sources.push_back({inputs[s].data(), shape.joins[s], shape.source_partial[s], fetches_to_write});
  }
  std::vector<ReduceTarget> targets, expected_targets;
  for (const bool partial : shape.target_partial) {
    const std::size_t size = bytes_of(spec.dtype, partial);
    const std::size_t skew = shape.skew + outputs.size() * shape.target_skew;
    outputs.emplace_back(shape.count * size, skew * size);
    expected.emplace_back(shape.count * size, skew * size);
  }
  for (std::size_t t = 0; t < outputs.size(); ++t) {
    targets.push_back({outputs[t].data(), shape.target_partial[t]});
    expected_targets.push_back({expected[t].data(), shape.target_partial[t]});
  }
  reduce_reference(spec, sources, expected_targets, shape.count);
  reduce(spec, sources, targets, shape.count);
  for (std::size_t t = 0; t < outputs.size(); ++t) {
    const auto got = outputs[t].bytes(), want = expected[t].bytes();
    ASSERT_TRUE(std::equal(got.begin(), got.end(), want.begin()))
        << to_string(spec.op) << " of " << shape.joins.size() << " x " << shape.count << ", target " << t << ", byte "
        << std::mismatch(got.begin(), got.end(), want.begin()).first - got.begin();
    ASSERT_TRUE(outputs[t].fence_intact())
        << to_string(spec.op) << " of " << shape.joins.size() << " x " << shape.count;
  }
}

class ReduceOf : public testing::TestWithParam<DType> {
 protected:
  std::mt19937_64 random_{20240229};
};
INSTANTIATE_TEST_SUITE_P(Types, ReduceOf, testing::ValuesIn(all_dtypes().begin(), all_dtypes().end()),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(ReduceOf, EveryOperatorRanksAndCountAgreesWithTheReference) {
  for_each_instruction_set([&] {
    for (const Op op : ops_of(GetParam())) {
      for (const int n : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 64}) {
        for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 64u, 129u, 515u}) {
          for (const std::size_t skew : {0u, 1u}) {
            const Kind kind = (n + count + skew) % 2 ? Kind::wild : Kind::tame;
            expect_same_bits({GetParam(), op, true, static_cast<std::uint32_t>(n)}, plain(n, 1, count, skew), kind,
                             random_);
            if (HasFatalFailure()) return;
          }
        }
      }
    }
  });
}

TEST_P(ReduceOf, SeveralTargetsAndNonTemporalStoresAgree) {
  for_each_instruction_set([&] {
    for (const Op op : ops_of(GetParam())) {
      for (const int n : {1, 2, 3, 13}) {
        for (const int targets : kBrief ? std::vector{0, 1, 3} : std::vector{0, 1, 2, 3, 5}) {
          for (const std::size_t skew : {0u, 1u, 64u}) {
            for (const std::size_t target_skew : {0u, 1u}) {
              for (const bool finish : {false, true}) {
                expect_same_bits({GetParam(), op, finish, 3, true}, plain(n, targets, 300, skew, target_skew),
                                 Kind::wild, random_);
                if (HasFatalFailure()) return;
              }
            }
          }
        }
      }
    }
  });
}

TEST_P(ReduceOf, AnyTreeAndAnyMixOfPartialResultsAgrees) {
  for_each_instruction_set([&] {
    for (int round = 0; round < 200; ++round) {
      const int n = 1 + static_cast<int>(random_() % 40);
      Shape shape{random_joins(n, random_), {}, {}, random_() % 300, random_() % 3};
      const bool mixed = random_() % 4 != 0, all = random_() % 2;
      for (int s = 0; s < n; ++s) shape.source_partial.push_back(mixed ? random_() % 4 == 0 : all);
      for (int t = 0; t < 3; ++t) shape.target_partial.push_back(random_() % 2);
      const auto ops = ops_of(GetParam());
      const Op op = ops[random_() % ops.size()];
      const ReduceSpec spec{GetParam(), op, random_() % 2 == 0, static_cast<std::uint32_t>(1 + random_() % 1000),
                            random_() % 2 == 0};
      expect_same_bits(spec, shape, round % 2 ? Kind::wild : Kind::tame, random_);
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(ReduceOf, TargetMayBeASource) {
  for_each_instruction_set([&] {
    for (const int n : {1, 2, 3, 8}) {
      for (int which = 0; which < n; ++which) {
        for (const std::size_t count : {5u, 1003u}) {
          std::vector<std::vector<std::byte>> inputs;
          for (int s = 0; s < n; ++s) inputs.push_back(elements(GetParam(), false, count, Kind::tame, random_));
          std::vector<ReduceSource> sources;
          for (int s = 0; s < n; ++s)
            sources.push_back(
                {inputs[static_cast<std::size_t>(s)].data(), canonical_joins(n)[static_cast<std::size_t>(s)]});
          std::vector<std::byte> expected(count * size_of(GetParam()));
          auto& in_place = inputs[static_cast<std::size_t>(which)];
          const ReduceTarget apart{expected.data()}, here{in_place.data()};
          for (const Op op : {Op::avg, Op::bxor}) {
            for (const bool finish : {false, true}) {
              if (!can_combine(GetParam(), op)) continue;
              const ReduceSpec spec{GetParam(), op, finish, 3};
              reduce_reference(spec, sources, {&apart, 1}, count);
              reduce(spec, sources, {&here, 1}, count);
              ASSERT_EQ(in_place, expected);
            }
          }
        }
      }
    }
  });
}

TEST_P(ReduceOf, OneUnfinishedSourceIsCopiedBitForBit) {
  for_each_instruction_set([&] {
    for (const std::size_t count : {0u, 1u, 3u, 1000u}) {
      for (const bool partial : {false, true}) {
        for (const std::size_t targets : {1u, 3u}) {
          auto source_bytes = elements(GetParam(), partial, count, Kind::wild, random_);
          const ReduceSource source{source_bytes.data(), 0, partial};
          std::vector<std::vector<std::byte>> out(targets, std::vector<std::byte>(source_bytes.size()));
          std::vector<ReduceTarget> to;
          for (auto& bytes : out) to.push_back({bytes.data(), partial});
          reduce({GetParam(), Op::sum, false, 7, targets == 3}, {&source, 1}, to, count);
          for (const auto& bytes : out) ASSERT_EQ(bytes, source_bytes);
        }
      }
    }
  });
}

// In either way in which this library copies, with the source among the targets, and none of them aligned.
TEST(Reduce, ALongCopyGoesToEachTarget) {
  const bool is_quick = copies_by_string(1 << 20);
  constexpr std::size_t kCount = 100'003;
  std::mt19937_64 random(3);
  for (const bool quick : {false, true}) {
    assume_string_copies_are_quick(quick);
    for (const std::size_t targets : {1u, 2u, 3u}) {
      for (const bool in_place : {false, true}) {
        for (const bool stream : {false, true}) {
          std::vector<std::byte> source = elements(DType::uint8, false, kCount + 1, Kind::wild, random);
          const std::vector<std::byte> expected(source.begin() + 1, source.end());
          std::vector<std::vector<std::byte>> out(targets, std::vector<std::byte>(kCount + 2));
          std::vector<ReduceTarget> to;
          for (auto& bytes : out) to.push_back({bytes.data() + 1, false});
          if (in_place) to[0].data = source.data() + 1;
          const ReduceSource from{source.data() + 1, 0, false};
          reduce({DType::uint8, Op::sum, false, 7, stream}, {&from, 1}, to, kCount);
          for (const ReduceTarget& target : to)
            ASSERT_TRUE(std::equal(expected.begin(), expected.end(), target.data)) << targets << quick << in_place;
          for (const auto& bytes : out) ASSERT_TRUE(bytes.front() == std::byte{} && bytes.back() == std::byte{});
        }
      }
    }
  }
  assume_string_copies_are_quick(is_quick);
}

// The reference itself, where the tree matters to every bit: against recursion over T with the host's own arithmetic.
template <class T, class Plus>
T canonical_sum(const std::vector<T>& leaves, std::size_t lo, std::size_t hi, Plus plus) {
  if (hi - lo == 1) return leaves[lo];
  std::size_t power = 1;
  while (power * 2 < hi - lo) power *= 2;
  return plus(canonical_sum(leaves, lo, lo + power, plus), canonical_sum(leaves, lo + power, hi, plus));
}

template <class T>
void expect_canonical_tree() {
  std::mt19937_64 random(7);
  for (int n = 1; n <= 70; ++n) {
    std::vector<T> leaves(static_cast<std::size_t>(n));
    const auto bytes = elements(dtype_of<T>, false, leaves.size(), Kind::tame, random);
    std::memcpy(leaves.data(), bytes.data(), bytes.size());
    std::vector<ReduceSource> sources;
    const auto joins = canonical_joins(n);
    for (std::size_t s = 0; s < leaves.size(); ++s)
      sources.push_back({reinterpret_cast<std::byte*>(&leaves[s]), joins[s]});
    T sum, mean;
    const ReduceTarget sum_target{reinterpret_cast<std::byte*>(&sum)}, mean_target{reinterpret_cast<std::byte*>(&mean)};
    reduce_reference({dtype_of<T>, Op::sum, true}, sources, {&sum_target, 1}, 1);
    reduce_reference({dtype_of<T>, Op::avg, true, static_cast<std::uint32_t>(n)}, sources, {&mean_target, 1}, 1);
    const T expected = canonical_sum(leaves, 0, leaves.size(), [](T a, T b) { return static_cast<T>(a + b); });
    ASSERT_EQ(sum, expected) << n;
    ASSERT_EQ(mean, static_cast<T>(expected / static_cast<T>(n))) << n;
  }
}

TEST(Reference, FollowsTheCanonicalTreeInFloat32) { expect_canonical_tree<float>(); }
TEST(Reference, FollowsTheCanonicalTreeInFloat64) { expect_canonical_tree<double>(); }
TEST(Reference, FollowsTheCanonicalTreeInInt32) {
  std::mt19937_64 random(7);
  std::vector<std::int32_t> values{-7, -8, 5};
  const auto joins = canonical_joins(3);
  std::vector<ReduceSource> sources;
  for (std::size_t s = 0; s < 3; ++s) sources.push_back({reinterpret_cast<std::byte*>(&values[s]), joins[s]});
  std::int32_t mean = 0;
  const ReduceTarget target{reinterpret_cast<std::byte*>(&mean)};
  reduce_reference({DType::int32, Op::avg, true, 3}, sources, {&target, 1}, 1);
  EXPECT_EQ(mean, -3);
}

TEST(ReduceArguments, TreesThatAreNotOneTreeAreRefused) {
  float value = 1;
  auto* const data = reinterpret_cast<std::byte*>(&value);
  const ReduceTarget target{data};
  const auto refused = [&](const std::vector<std::uint8_t>& joins) {
    std::vector<ReduceSource> sources;
    for (const std::uint8_t j : joins) sources.push_back({data, j});
    for (const auto function : {reduce, reduce_reference}) {
      try {
        function({DType::float32, Op::max, true}, sources, {&target, 1}, 1);
        return false;
      } catch (const Error& error) {
        if (error.code != ErrorCode::invalid_argument) return false;
      }
    }
    return true;
  };
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused({1}));
  EXPECT_TRUE(refused({0, 0}));
  EXPECT_TRUE(refused({0, 2}));
  EXPECT_TRUE(refused({0, 1, 0}));
  EXPECT_TRUE(refused({0, 1, 0, 1}));
  EXPECT_TRUE(refused({0, 1, 0, 3}));
  std::vector<std::uint8_t> leaning(33);
  leaning.back() = 32;
  EXPECT_FALSE(refused(leaning));
  leaning.back() = 0;
  leaning.push_back(33);
  EXPECT_TRUE(refused(leaning)) << "33 results waiting";
}

TEST(ReduceArguments, OperatorsThatTheTypeLacksAreRefused) {
  for (const DType dtype : all_dtypes()) {
    for (const Op op : all_ops()) {
      std::uint64_t value = 0;
      const ReduceSource source{reinterpret_cast<std::byte*>(&value)};
      const ReduceTarget target{reinterpret_cast<std::byte*>(&value)};
      for (const auto function : {reduce, reduce_reference}) {
        std::string said;
        try {
          function({dtype, op, true, 1}, {&source, 1}, {&target, 1}, 1);
        } catch (const Error& error) {
          EXPECT_EQ(error.code, ErrorCode::invalid_argument);
          said = error.what();
        }
        EXPECT_EQ(said.empty(), can_combine(dtype, op)) << to_string(dtype) << " " << to_string(op) << ": " << said;
        EXPECT_TRUE(said.empty() ||
                    (said.find(to_string(dtype)) != std::string::npos && said.find(to_string(op)) != std::string::npos))
            << said;
      }
    }
  }
}

TEST(ReduceArguments, AverageOverNoLeavesIsRefused) {
  float value = 1;
  const ReduceSource source{reinterpret_cast<std::byte*>(&value)};
  const ReduceTarget target{reinterpret_cast<std::byte*>(&value)};
  for (const auto function : {reduce, reduce_reference}) {
    EXPECT_THROW(function({DType::float32, Op::avg, true, 0}, {&source, 1}, {&target, 1}, 1), Error);
  }
}

}  // namespace
}  // namespace tutti::internal
