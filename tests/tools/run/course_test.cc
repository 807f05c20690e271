#include "run/course.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tutti::internal::tools {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Kind = NodeMessage::Kind;

// "2 start 0": to node 2, its ranks of attempt 0.
std::vector<std::string> orders_of(Course& course) {
  std::vector<std::string> words;
  for (const auto& [node, message] : course.take_outgoing()) {
    std::string text = std::to_string(node);
    if (message.kind == Kind::start) text += " start " + std::to_string(message.attempt);
    if (message.kind == Kind::end) text += " end " + std::to_string(message.attempt);
    if (message.kind == Kind::over) text += " over " + std::to_string(message.status);
    words.push_back(text + (message.words.empty() ? "" : ": " + message.words));
  }
  return words;
}

void come(Course& course, int node) { course.received(node, {Kind::arrival, 0, 0, "alike"}); }
void fail(Course& course, int node, int attempt, const std::string& how) {
  course.received(node, {Kind::failed, attempt, 1, how});
}
void finish(Course& course, int node, int attempt, int status) {
  course.received(node, {Kind::ended, attempt, status, ""});
}

Course begun(int nodes, int max_restarts) {
  Course course(nodes, max_restarts, "alike");
  for (int node = 1; node < nodes; ++node) come(course, node);
  course.take_outgoing();
  return course;
}

TEST(Course, RanksStartWhenEveryNodeHasCome) {
  Course course(3, 1, "alike");
  come(course, 2);
  EXPECT_TRUE(course.is_gathering());
  EXPECT_THAT(orders_of(course), IsEmpty());
  come(course, 1);
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 0", "1 start 0", "2 start 0"));
}

TEST(Course, AJobThatSucceedsEverywhereIsOverAndNode0HearsItLast) {
  Course course = begun(3, 1);
  finish(course, 0, 0, 0);
  finish(course, 2, 0, 0);
  EXPECT_THAT(orders_of(course), IsEmpty());
  finish(course, 1, 0, 0);
  EXPECT_THAT(orders_of(course), ElementsAre("2 over 0", "1 over 0", "0 over 0"));
}

TEST(Course, TheFirstFailureEndsTheAttemptEverywhereAndIsOneRestart) {
  Course course = begun(3, 2);
  fail(course, 1, 0, "rank 1 exited with status 5");
  EXPECT_THAT(orders_of(course), ElementsAre("0 end 0: node 1: rank 1 exited with status 5",
                                             "2 end 0: node 1: rank 1 exited with status 5"));
  fail(course, 2, 0, "rank 2 exited with status 1");
  finish(course, 1, 0, 1);
  finish(course, 2, 0, 1);
  EXPECT_THAT(orders_of(course), IsEmpty()) << "node 0 still has ranks of this attempt";
  finish(course, 0, 0, 1);
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 1", "1 start 1", "2 start 1"));
}

TEST(Course, WhatIsSaidOfAnEarlierAttemptDoesNotCount) {
  Course course = begun(2, 1);
  fail(course, 1, 0, "rank 1 exited with status 5");
  finish(course, 1, 0, 1);
  finish(course, 0, 0, 1);
  course.take_outgoing();
  fail(course, 0, 0, "rank 0 exited with status 1");
  finish(course, 0, 0, 1);
  finish(course, 1, 0, 1);
  EXPECT_THAT(orders_of(course), IsEmpty());
}

TEST(Course, ANodeThatHadEndedWellIsStartedAgainToo) {
  Course course = begun(2, 1);
  finish(course, 0, 0, 0);
  fail(course, 1, 0, "rank 1 exited with status 5");
  EXPECT_THAT(orders_of(course), IsEmpty());
  finish(course, 1, 0, 1);
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 1", "1 start 1"));
}

TEST(Course, ABadEndWithoutAFailureIsARestartToo) {
  Course course = begun(2, 1);
  finish(course, 0, 0, 0);
  finish(course, 1, 0, 1);
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 1", "1 start 1"));
}

TEST(Course, TheLastFailureIsToldToAllInOneSentence) {
  Course course = begun(2, 0);
  fail(course, 1, 0, "rank 1 exited with status 5");
  finish(course, 0, 0, 1);
  course.take_outgoing();
  finish(course, 1, 0, 2);
  const std::string words = ": the job has failed: all its 0 restarts are used up. node 1: rank 1 exited with status 5";
  EXPECT_THAT(orders_of(course), ElementsAre("1 over 2" + words, "0 over 2" + words));
}

TEST(Course, TheUserEndsTheJobOnAnyNode) {
  for (const int node : {0, 1}) {
    Course course = begun(2, 3);
    course.received(node, {Kind::stop, 0, 1, "Interrupt"});
    const std::string where = "node " + std::to_string(node) + ": Interrupt";
    EXPECT_THAT(orders_of(course), ElementsAre(std::to_string(1 - node) + " end 0: " + where));
    const std::string words = " over 1: the job was ended on " + where;
    finish(course, 1, 0, 1);
    EXPECT_THAT(orders_of(course), ElementsAre("1" + words)) << "it need not wait for the others";
    finish(course, 0, 0, 1);
    EXPECT_THAT(orders_of(course), ElementsAre("0" + words));
  }
}

// So that nobody waits any more for who reads their output.
TEST(Course, TheOrderToEndRanksSaysWhetherTheJobEndsWithThem) {
  const auto status_of_order = [](Course& course) { return course.take_outgoing().at(0).message.status; };
  Course failing = begun(2, 1), lost = begun(2, 1), ended = begun(2, 1);
  fail(failing, 1, 0, "rank 1 exited with status 5");
  EXPECT_EQ(status_of_order(failing), 0);
  lost.lost(1, "the connection was closed");
  EXPECT_EQ(status_of_order(lost), 1);
  ended.received(1, {Kind::stop, 0, 1, "Interrupt"});
  EXPECT_EQ(status_of_order(ended), 1);
}

TEST(Course, ANodeThatIsLostEndsTheJob) {
  Course course = begun(3, 3);
  course.lost(2, "the connection was closed");
  const std::string why = "node 2 is lost (the connection was closed)";
  EXPECT_THAT(orders_of(course), ElementsAre("0 end 0: " + why, "1 end 0: " + why));
  finish(course, 0, 0, 1);
  EXPECT_THAT(orders_of(course), IsEmpty());
  finish(course, 1, 0, 1);
  const std::string over = " over 1: the job has failed: " + why;
  EXPECT_THAT(orders_of(course), ElementsAre("1" + over, "0" + over));
}

TEST(Course, ANodeThatIsLostWhileOthersComeEndsTheJob) {
  Course course(3, 3, "alike");
  come(course, 1);
  course.lost(1, "the connection was closed");
  EXPECT_THAT(orders_of(course),
              ElementsAre("0 over 1: the job has failed: node 1 is lost (the connection was closed)"));
}

TEST(Course, LaunchersThatWereStartedDifferentlyAreTold) {
  Course course(3, 1, "--max-restarts 1");
  come(course, 2);
  const auto orders = orders_of(course);
  ASSERT_EQ(orders.size(), 2u);
  for (const std::string& order : orders)
    EXPECT_THAT(order, HasSubstr("node 2 was started with `alike`, node 0 with `--max-restarts 1`"));
}

TEST(Course, WhoIsWaitedForIsToldToThoseThatHaveCome) {
  Course course(4, 1, "alike");
  come(course, 2);
  course.warn("5 s");
  EXPECT_THAT(orders_of(course), ElementsAre("0: waiting for the launcher of node 1, 3 since 5 s",
                                             "2: waiting for the launcher of node 1, 3 since 5 s"));
}

TEST(Course, LaunchersThatDoNotComeAreNamed) {
  Course course(4, 1, "alike");
  come(course, 2);
  course.overdue("60 s");
  const auto orders = orders_of(course);
  ASSERT_EQ(orders.size(), 2u);
  for (const std::string& order : orders)
    EXPECT_THAT(order, HasSubstr("launcher of node 1, 3 did not come within 60 s"));
}

TEST(Course, OneHostDecidesForItselfWithoutWords) {
  Course course(1, 1, "");
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 0"));
  fail(course, 0, 0, "rank 0 exited with status 2");
  finish(course, 0, 0, 2);
  EXPECT_THAT(orders_of(course), ElementsAre("0 start 1"));
  finish(course, 0, 1, 2);
  EXPECT_THAT(orders_of(course), ElementsAre("0 over 2"));
}

}  // namespace
}  // namespace tutti::internal::tools
