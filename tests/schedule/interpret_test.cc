#include "schedule/interpret.h"

#include <gtest/gtest.h>

#include "schedule/examples.h"

namespace tutti::internal {
namespace {

TEST(Interpret, FindsNoErrorInCorrectSchedules) {
  for (int ranks = 1; ranks <= 7; ++ranks)
    for (const Example& example : examples(ranks))
      for (std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t(ranks) + 1, std::size_t(ranks) * 5 + 3})
        for (std::uint64_t seed = 0; seed < 4; ++seed) {
          const tutti::internal::Run run =
              interpret(example.schedules, example.layout, example.goal, count, seed % 2 == 0, seed);
          EXPECT_EQ(run.error_text, "") << example.name << " on " << ranks << " ranks, " << count << " elements, seed "
                                        << seed;
        }
}

}  // namespace
}  // namespace tutti::internal
