// What `tutti tune` measures with.
#include "tune/measure.h"

#include <gtest/gtest.h>

#include "selection/choose_text.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {
namespace {

#if !(defined(TUTTI_BRIEF) && defined(__SANITIZE_THREAD__))  // minutes of the two threads of one pair, as in every call
TEST(Measure, ALinkIsACurveThatRisesWithTheSize) {
  const std::string table = probe_table();
  EXPECT_EQ(to_text(internal::parse_table(table, "the probe's table")), table);
  Communicator::run_threads(
      2,
      [](Communicator& pair) {
        LinkProbe probe(pair);
        probe.round();
        const LinkCost link = probe.result();
        ASSERT_EQ(link.arrival.points.size(), link.busy.points.size());
        double before = 0;
        for (std::size_t i = 0; i < link.arrival.points.size(); ++i) {
          EXPECT_GE(link.arrival.points[i].us, before);
          EXPECT_GT(link.busy.points[i].us, 0);
          before = link.arrival.points[i].us;
        }
      },
      "shm");
}

#endif

TEST(Measure, FiguresHaveThreeDigits) {
  EXPECT_EQ(in_three_digits(0), 0);
  EXPECT_EQ(in_three_digits(0.123456), 0.123);
  EXPECT_EQ(in_three_digits(1.0), 1.0);
  EXPECT_EQ(in_three_digits(98765.4), 98800);
}

}  // namespace
}  // namespace tutti::internal::tools
