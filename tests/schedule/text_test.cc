#include "schedule/text.h"

#include <gtest/gtest.h>

#include "schedule/examples.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

TEST(Text, RoundTripsEveryExample) {
  for (int ranks = 1; ranks <= 9; ++ranks)
    for (const Example& example : examples(ranks))
      EXPECT_EQ(parse_schedules(to_text(example.schedules)), example.schedules)
          << example.name << " on " << ranks << " ranks";
}

TEST(Text, ReadsLikeThis) {
  const std::string text = to_text(recursive_doubling(4).schedules);
  EXPECT_EQ(text.substr(0, text.find("rank 1 of")),
            "rank 0 of 4: 1 slice x 1 chunk, 2 scratch rows\n"
            "  send input[slice 0 chunk 0] to 1\n"
            "  scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1\n"
            "  send scratch[row 0 slice 0 chunk 0] to 2\n"
            "  scratch[row 1 slice 0 chunk 0] = scratch[row 0 slice 0 chunk 0] + partial from 2\n"
            "  wait_send 1 to 1\n"
            "  output[slice 0 chunk 0] = finish(scratch[row 1 slice 0 chunk 0])\n");
}

TEST(Text, RowsOfAMessageAreNamedByTheirSlices) {
  const std::string text =
      "rank 0 of 1: 9 exact slices x 1 chunk, 5 scratch rows\n"
      "  receive relay[row 1 slice 7, 4-6, 2 chunk 0] from 1\n"
      "  send input[slice 1, 2 chunk 0] to 2\n"
      "  send input[slice 0-2 chunk 0] to 2\n"
      "  send relay[row 0 slice 3 chunk 0] to 1\n";
  const std::vector<Schedule> schedules = parse_schedules(text);
  EXPECT_EQ(to_text(schedules), text);
  const Schedule& schedule = schedules.front();
  ASSERT_EQ(Schedule::rows_of(schedule.steps[0]), 5u);
  EXPECT_EQ(schedule.row_of(schedule.steps[0], 4), (Region{Space::relay, 5, 2, 0}));
  EXPECT_EQ(schedule.row_of(schedule.steps[1], 1), (Region{Space::input, 0, 2, 0}));
  EXPECT_EQ(Schedule::rows_of(schedule.steps[3]), 1u);
  for (const std::string wrong : {"send input[slice 0 - chunk 0] to 1", "send input[slice 0, chunk 0] to 1",
                                  "send input[slice 0-99999 chunk 0] to 1", "output[slice 0, 1 chunk 0] = from 1"})
    EXPECT_THROW(parse_schedules("rank 0 of 2: 2 exact slices x 1 chunk, 0 scratch rows\n" + wrong), Error) << wrong;
}

TEST(Text, TreesKeepTheirShape) {
  const std::string text =
      "rank 0 of 1: 1 exact slice x 1 chunk, 0 scratch rows\n"
      "  output[slice 0 chunk 0] = finish(((from 1 + partial from 2) + input[slice 0 chunk 0]) + (from 1 + (from 3 + "
      "from 1[slice 2 "
      "chunk 0])))\n";
  const std::vector<Schedule> schedules = parse_schedules(text);
  EXPECT_EQ(to_text(schedules), text);
  std::vector<int> joins;
  for (const Source& source : schedules[0].sources) joins.push_back(source.joins);
  EXPECT_EQ(joins, (std::vector<int>{0, 1, 1, 0, 0, 3}));
  EXPECT_TRUE(schedules[0].exact_slices && schedules[0].steps[0].finish && schedules[0].sources[1].partial);
}

TEST(Text, AReceiveSaysItsMessageWhereThatIsNotTheNext) {
  const std::string text =
      "rank 0 of 1: 1 slice x 1 chunk, 1 scratch row\n"
      "  receive output[slice 0 chunk 0] from 1, message 1\n"
      "  scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0] + from 1\n"
      "  receive output[slice 0 chunk 0] from 1\n";
  const std::vector<Schedule> schedules = parse_schedules(text);
  EXPECT_EQ(to_text(schedules), text);
  EXPECT_EQ(schedules[0].steps[0].message, 1u);
  EXPECT_EQ(schedules[0].steps[2].message, 2u);
}

TEST(Text, ErrorsNameTheLine) {
  const auto error = [](std::string_view text) -> std::string {
    try {
      parse_schedules(text);
    } catch (const Error& caught) {
      return caught.code == ErrorCode::invalid_argument ? caught.what() : "another code";
    }
    return "none";
  };
  const std::string header = "rank 0 of 1: 1 slice x 1 chunk, 0 scratch rows\n";
  EXPECT_EQ(error("# nothing\n\n" + header + "# nor here"), "none");
  EXPECT_EQ(error("send"), "line 1: expected 'rank', found 'send'");
  EXPECT_EQ(error(header + "\n send output to 1"), "line 3: expected '[', found 'to'");
  EXPECT_EQ(error(header + "push"), "line 2: expected a step, found 'push'");
  EXPECT_EQ(error(header + "send input[slice 0 chunk 70000] to 1"),
            "line 2: expected a number up to 65535, found '70000'");
  EXPECT_EQ(error(header + "output[slice 0 chunk 0] = from 1 + from 2 + from 3"),
            "line 2: expected nothing more, found '+'");
  EXPECT_EQ(error(header + "output[slice 0 chunk 0] = (from 1"), "line 2: expected ')', found its end");
  EXPECT_EQ(error("rank 0 of 1: 1 slice x -1 chunks, 0 scratch rows"),
            "line 1: expected a number up to 2147483647, found '-'");
}

}  // namespace
}  // namespace tutti::internal
