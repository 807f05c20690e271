#include "schedule/builder.h"

#include <gtest/gtest.h>

#include "schedule/layout.h"
#include "schedule/text.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

const Region kInput{Space::input, 0, 0, 0};
const Region kOutput{Space::output, 0, 0, 0};
const Region kScratch{Space::scratch, 0, 0, 0};

std::string built(Builder&& builder) {
  const Schedule schedule = std::move(builder).build();
  const std::string text = to_text(std::span(&schedule, 1));
  return text.substr(text.find('\n') + 1);
}

TEST(Builder, WaitsForALoanBeforeItsMemoryIsWritten) {
  Builder builder(0, 1);
  builder.new_scratch_row();
  builder.copy(kInput, kScratch);
  builder.send(1, kScratch);
  builder.send(2, kScratch);
  builder.copy(kInput, kScratch);
  EXPECT_EQ(built(std::move(builder)),
            "  scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0]\n"
            "  send scratch[row 0 slice 0 chunk 0] to 1\n"
            "  send scratch[row 0 slice 0 chunk 0] to 2\n"
            "  wait_send 1 to 1\n"
            "  wait_send 1 to 2\n"
            "  scratch[row 0 slice 0 chunk 0] = input[slice 0 chunk 0]\n");
}

TEST(Builder, InPlaceTheInputLentIsTheOutputWritten) {
  Builder builder(0, 1);
  builder.send(1, kInput);
  builder.copy(kInput, kOutput, true);
  EXPECT_EQ(built(std::move(builder)),
            "  send input[slice 0 chunk 0] to 1\n"
            "  wait_send 1 to 1\n"
            "  output[slice 0 chunk 0] = finish(input[slice 0 chunk 0])\n");
}

TEST(Builder, AnotherRowOfTheInputIsNotTheOutput) {
  Builder builder(0, 1);
  builder.send(1, Region{Space::input, 1, 0, 0});
  builder.copy(kInput, kOutput, true);
  EXPECT_EQ(built(std::move(builder)),
            "  send input[row 1 slice 0 chunk 0] to 1\n"
            "  output[slice 0 chunk 0] = finish(input[slice 0 chunk 0])\n");
}

// The executor does both at once, if nothing stands between them. In place the receive must not pass the copy.
TEST(Builder, AReceiveDoesNotPartACopyFromItsSends) {
  Builder builder(0, 1);
  builder.new_scratch_row();
  builder.copy(kInput, kScratch);
  for (const int peer : {1, 2}) builder.send(peer, kScratch);
  builder.receive(1, kOutput);
  const std::string text = built(std::move(builder));
  EXPECT_GT(text.find("receive"), text.rfind("send")) << text;
}

TEST(Builder, WaitsForAMessageBeforeItsMemoryIsUsed) {
  for (const bool send : {true, false}) {
    Builder builder(0, 1);
    builder.new_scratch_row();
    builder.receive(1, kOutput);
    if (send)
      builder.send(2, kOutput);
    else
      builder.copy(kOutput, kScratch);
    EXPECT_EQ(built(std::move(builder)),
              std::string("  receive output[slice 0 chunk 0] from 1\n  wait_receive 1 from 1\n") +
                  (send ? "  send output[slice 0 chunk 0] to 2\n"
                        : "  scratch[row 0 slice 0 chunk 0] = output[slice 0 chunk 0]\n"));
  }
}

TEST(Builder, AnAnswerNeedsNoWaitButAnotherPeersMessageDoes) {
  for (const int peer : {1, 2}) {
    Builder builder(0, 1);
    builder.send(1, kInput);
    builder.receive(peer, kOutput);
    EXPECT_EQ(built(std::move(builder)), peer == 1 ? "  receive output[slice 0 chunk 0] from 1\n"
                                                     "  send input[slice 0 chunk 0] to 1\n"
                                                   : "  send input[slice 0 chunk 0] to 1\n"
                                                     "  wait_send 1 to 1\n"
                                                     "  receive output[slice 0 chunk 0] from 2\n");
  }
}

TEST(Builder, OneWaitCoversEarlierMessages) {
  Builder builder(0, 2);
  const Region other{Space::output, 0, 1, 0};
  builder.receive(1, kOutput);
  builder.receive(1, other);
  builder.send(2, other);
  builder.send(2, kOutput);
  EXPECT_EQ(built(std::move(builder)),
            "  receive output[slice 0 chunk 0] from 1\n"
            "  receive output[slice 1 chunk 0] from 1\n"
            "  wait_receive 2 from 1\n"
            "  send output[slice 1 chunk 0] to 2\n"
            "  send output[slice 0 chunk 0] to 2\n");
}

TEST(Builder, PostsAReceiveAsEarlyAsItsMemoryAllows) {
  const Region mine{Space::output, 0, 1, 0};
  Builder builder(0, 2);
  builder.reduce({Builder::message(1, mine, false)}, mine);  // message 0 of rank 1
  builder.send(1, mine);
  builder.receive(2, kOutput);
  builder.receive(1, kOutput);
  EXPECT_EQ(built(std::move(builder)),
            "  receive output[slice 0 chunk 0] from 2\n"
            "  output[slice 1 chunk 0] = from 1\n"
            "  send output[slice 1 chunk 0] to 1\n"
            "  wait_receive 1 from 2\n"
            "  receive output[slice 0 chunk 0] from 1\n");

  Builder free(0, 2);
  free.reduce({Builder::message(1, mine, false)}, mine);
  free.receive(1, kOutput);
  free.receive(2, Region{Space::output, 0, 1, 0});
  EXPECT_EQ(built(std::move(free)),
            "  receive output[slice 0 chunk 0] from 1, message 1\n"
            "  output[slice 1 chunk 0] = from 1\n"
            "  receive output[slice 1 chunk 0] from 2\n")
      << "never before the memory is written";
}

TEST(Builder, ScratchMemoryIsNamedByRowAndChunkWhateverTheSlice) {
  Builder builder(0, 2);
  builder.new_scratch_row();
  builder.copy(kInput, kScratch);
  builder.send(1, kScratch);
  builder.copy({Space::input, 0, 1, 0}, {Space::scratch, 0, 1, 0});
  EXPECT_NE(built(std::move(builder)).find("wait_send 1 to 1\n  scratch[row 0 slice 1"), std::string::npos);
}

std::string tree(const std::vector<int>& bounds) {
  std::vector<Source> sources;
  const std::vector<std::uint8_t> joins = canonical_joins(bounds);
  for (std::size_t i = 0; i < joins.size(); ++i) {
    sources.push_back(Builder::message(bounds[i], kInput, false));
    sources.back().joins = joins[i];
  }
  Builder builder(0, 1);
  builder.reduce(sources, kOutput, true);
  const std::string text = built(std::move(builder));
  return text.substr(text.find("finish"));
}

TEST(CanonicalJoins, AreTheTreeOfTheDesign) {
  EXPECT_EQ(tree({0, 1}), "finish(from 0)\n");
  EXPECT_EQ(tree({0, 1, 2, 3}), "finish((from 0 + from 1) + from 2)\n");
  EXPECT_EQ(tree({0, 1, 2, 3, 4, 5}), "finish(((from 0 + from 1) + (from 2 + from 3)) + from 4)\n");
  EXPECT_EQ(tree({0, 1, 2, 3, 4, 5, 6, 7}),
            "finish(((from 0 + from 1) + (from 2 + from 3)) + ((from 4 + from 5) + from 6))\n");
}

TEST(CanonicalJoins, TakeWholeSubtreesAsNodes) {
  EXPECT_EQ(tree({0, 4, 5}), "finish(from 0 + from 4)\n");
  EXPECT_EQ(tree({0, 2, 3, 4, 6}), "finish((from 0 + (from 2 + from 3)) + from 4)\n");
  EXPECT_EQ(tree({0, 1, 2, 4, 6, 7}), "finish(((from 0 + from 1) + from 2) + (from 4 + from 6))\n");
}

TEST(Builder, EveryRowOfAMessageIsLent) {
  const auto relay = [](int row, int slice) {
    return Region{Space::relay, static_cast<std::uint16_t>(row), static_cast<std::uint32_t>(slice), 0};
  };
  const auto own = [](int slice) { return Region{Space::input, 0, static_cast<std::uint32_t>(slice), 0}; };
  Builder builder(0, 9, 1, true);
  EXPECT_EQ(builder.new_scratch_rows(3), 0);
  EXPECT_EQ(builder.new_scratch_row(), 3);
  builder.send(1, {relay(0, 4), {5, 6}});
  builder.copy(own(0), relay(3, 0));
  builder.copy(own(0), relay(2, 0));       // the last row of what is lent
  builder.receive(2, {relay(2, 7), {8}});  // passes the copies of other rows alone
  builder.copy(relay(3, 8), own(1));       // the last row of what comes
  EXPECT_EQ(built(std::move(builder)),
            "  send relay[row 0 slice 4-6 chunk 0] to 1\n"
            "  relay[row 3 slice 0 chunk 0] = input[slice 0 chunk 0]\n"
            "  wait_send 1 to 1\n"
            "  relay[row 2 slice 0 chunk 0] = input[slice 0 chunk 0]\n"
            "  receive relay[row 2 slice 7, 8 chunk 0] from 2\n"
            "  wait_receive 1 from 2\n"
            "  input[slice 1 chunk 0] = relay[row 3 slice 8 chunk 0]\n");
  Builder many(0, 1);
  EXPECT_EQ(many.new_scratch_rows(65535), 0);
  EXPECT_THROW(many.new_scratch_row(), Error);
}

}  // namespace
}  // namespace tutti::internal
