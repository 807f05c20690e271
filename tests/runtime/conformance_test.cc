// Every collective through the public API against the plain statement of it (shapes.h): by every algorithm, for every
// type and operator, in place and not, blocking and started, from 1 to 8 ranks, over every transport that needs no
// second host (hierarchical_test.cc: over two hosts). The check takes a covering part; the whole product,
// ExhaustiveConformance, is run by hand.
#include "runtime/conformance.h"

#include <gtest/gtest.h>

#include "brief.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

class Conformance : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Of, Conformance, testing::ValuesIn(kTransports), [](const auto& it) { return it.param; });

TEST_P(Conformance, EveryCollectiveGivesWhatItSays) {
  for (const int ranks : kBrief ? std::vector{1, 2, 3, 5} : std::vector{1, 2, 3, 4, 5, 6, 7, 8}) {
    const auto calls = covering_calls(ranks, kBrief ? 3 : 12);
    std::vector<std::vector<std::vector<std::byte>>> right;
    for (const auto& [shape, form] : calls) right.push_back(expected(shape, ranks));
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          for (std::size_t i = 0; i < calls.size() && !testing::Test::HasFatalFailure(); ++i) {
            Form form = calls[i].second;  // in place is each rank's own affair
            form.in_place ^= (i + static_cast<std::size_t>(world.rank())) % 3 == 0;
            expect_right(world, calls[i].first, form, right[i][static_cast<std::size_t>(world.rank())]);
          }
        },
        GetParam());
  }
}

#ifndef TUTTI_BRIEF
// A minute.
class ExhaustiveConformance : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ExhaustiveOf, ExhaustiveConformance, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

TEST_P(ExhaustiveConformance, EveryCollectiveTypeOperatorCountRootAndFormGivesWhatItSays) {
  for (int ranks = 1; ranks <= 8; ++ranks) Communicator::run_threads(ranks, expect_every_call_right, GetParam());
}
#endif

}  // namespace
}  // namespace tutti::internal
