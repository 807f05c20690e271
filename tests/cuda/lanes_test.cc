// What a kernel's thread does (src/cuda/thread.h), on the CPU: the bits of tutti::internal::reduce(), each byte stored
// once, nothing touched that is not the call's, every access aligned.
#include "cuda/lanes.h"

#include <gtest/gtest.h>

#include "cuda/cases.h"

namespace tutti::internal::cuda_test {
namespace {

using namespace reduce_test;

#ifdef TUTTI_BRIEF
constexpr std::size_t kMaxElements = 100;  // several times slower
#else
constexpr std::size_t kMaxElements = 300;
#endif

class Lanes : public testing::TestWithParam<DType> {
 protected:
  std::mt19937_64 random_{20261123};
  Runner on_lanes_ = [&](const auto& spec, auto sources, auto targets, std::size_t count) {
    reduce_on_lanes(spec, sources, targets, count, random_);
  };
};
INSTANTIATE_TEST_SUITE_P(Types, Lanes, testing::ValuesIn(all_dtypes().begin(), all_dtypes().end()),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(Lanes, EveryOperatorRanksAndAlignmentGivesTheBitsOfTheCpu) {
  for_each_case(GetParam(), kMaxElements, random_, [&](const Case& each, Kind kind) {
    if (!HasFatalFailure()) expect_same_bits(each, on_lanes_, kind, random_);
  });
}

// As deep as a tree may be, and as many sources and targets as a call may have.
TEST_P(Lanes, TheLargestCallsGiveTheBitsOfTheCpu) {
  Case each{{GetParam(), Op::sum, true, 7}, {}, {}, {}, 35};
  for (int s = 0; s < 33; ++s) each.joins.push_back(s < 32 ? 0 : 32);  // leaning: 32 wait
  each.sources.resize(33);
  each.targets.resize(64);
  expect_same_bits(each, on_lanes_, Kind::tame, random_);
  each.joins = random_joins(1024, random_);
  each.sources.resize(1024);
  for (std::size_t s = 0; s < 1024; ++s) each.sources[s].skew = s % 2;
  expect_same_bits(each, on_lanes_, Kind::tame, random_);
}

}  // namespace
}  // namespace tutti::internal::cuda_test
