#include "control/join.h"

#include <gtest/gtest.h>

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;

Introduction introduction_of(int rank, int size) {
  Introduction i;
  i.member = {rank, "here", "127.0.0.1", static_cast<std::uint16_t>(5000 + rank), "name", 100 + rank};
  i.size = size;
  i.timeout_ms = 1000;
  i.heartbeat_timeout_ms = 5000;
  i.transport = "auto";
  return i;
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST(Registrar, GathersRanksInAnyOrderIntoATableInOrder) {
  for (int size : {2, 3, 8, 65}) {
    Registrar registrar(introduction_of(0, size));
    for (int rank = size - 1; rank > 0; --rank) {
      EXPECT_FALSE(registrar.complete());
      EXPECT_FALSE(registrar.admit(introduction_of(rank, size)));
    }
    ASSERT_TRUE(registrar.complete());
    const auto members = registrar.members();
    for (int rank = 0; rank < size; ++rank) EXPECT_EQ(members[static_cast<std::size_t>(rank)].rank, rank);
  }
}

TEST(Registrar, RefusesWhatDoesNotFitAndSaysWhoAndWhy) {
  const auto refusal_of = [](auto change) {
    Registrar registrar(introduction_of(0, 3));
    EXPECT_FALSE(registrar.admit(introduction_of(1, 3)));
    Introduction i = introduction_of(2, 3);
    change(i);
    const auto refusal = registrar.admit(i);
    EXPECT_TRUE(refusal);
    EXPECT_FALSE(registrar.complete());
    return refusal.value_or(Refusal{}).message;
  };
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.size = 4; }),
                   "rank 2 (process 102) says that the job has 4 ranks, rank 0 says 3"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.member.rank = 3; }), "rank 3 (process 102) is outside 0..2"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.member.rank = -1; }), "is outside 0..2"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.member.rank = 1; }), "two processes are rank 1 (101 and 102)"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.member.rank = 0; }), "two processes are rank 0"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.transport = "tcp"; }), "transport 'tcp', rank 0 for 'auto'"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.timeout_ms = 2500; }), "a timeout of 2.5 s, rank 0 of 1 s"));
  EXPECT_TRUE(says(refusal_of([](auto& i) { i.heartbeat_timeout_ms = 400; }),
                   "a heartbeat timeout of 0.4 s, rank 0 of 5 s: TUTTI_HEARTBEAT_TIMEOUT must be the same"));
}

TEST(Registrar, ARankOfAnotherAttemptIsToldAloneAndALaterOneIsToTryAgain) {
  Introduction own = introduction_of(0, 2), earlier = introduction_of(1, 2), later = introduction_of(1, 2);
  own.attempt = earlier.attempt = later.attempt = 4;
  EXPECT_FALSE(Registrar(own).other_attempt(earlier));
  earlier.attempt = 3;
  later.attempt = 5;
  const auto turned_away = Registrar(own).other_attempt(earlier), put_off = Registrar(own).other_attempt(later);
  ASSERT_TRUE(turned_away && put_off);
  EXPECT_FALSE(turned_away->try_again);
  EXPECT_TRUE(put_off->try_again);
  EXPECT_TRUE(says(turned_away->message, "is of attempt 3 of the job, rank 0 of attempt 4: the job was started again"));
  EXPECT_TRUE(says(put_off->message, "is of attempt 5 of the job, rank 0 of attempt 4, which has not ended yet"));

  Joiner joiner(1, 2);
  joiner.received(*put_off);
  EXPECT_FALSE(joiner.error());
  EXPECT_EQ(joiner.try_again(), put_off->message);
  joiner.received(*turned_away);
  EXPECT_TRUE(joiner.error());
}

// What would be found out later, on the control threads of the others.
TEST(Join, AMemberThatTheOthersCannotUseIsRefusedByAll) {
  const auto is_refused = [](auto change) {
    Introduction wrong = introduction_of(1, 2);
    change(wrong.member);
    Registrar registrar(introduction_of(0, 2));
    Joiner joiner(1, 2);
    joiner.received(Table{{}, {introduction_of(0, 2).member, wrong.member}});
    return registrar.admit(wrong).has_value() && joiner.error().has_value();
  };
  EXPECT_FALSE(is_refused([](Member&) {}));
  EXPECT_FALSE(is_refused([](Member& m) { m.local_name = std::string(107, 'x'); }));
  EXPECT_TRUE(is_refused([](Member& m) { m.local_name = std::string(108, 'x'); }));
  EXPECT_TRUE(is_refused([](Member& m) { m.local_name = ""; }));
  EXPECT_TRUE(is_refused([](Member& m) { m.host_id = ""; }));
  EXPECT_TRUE(is_refused([](Member& m) { m.host_id = std::string(1000, 'x'); }));
  EXPECT_TRUE(is_refused([](Member& m) { m.processors = std::string(60'000, '\xff'); }));
}

TEST(Registrar, SharedMemoryBetweenHostsIsRefused) {
  Introduction own = introduction_of(0, 2), other = introduction_of(1, 2);
  own.transport = other.transport = "shm";
  EXPECT_FALSE(Registrar(own).admit(other));
  other.member.host_id = "there";
  EXPECT_TRUE(Registrar(own).admit(other));
}

TEST(Registrar, NamesTheMissing) {
  Registrar registrar(introduction_of(0, 5));
  EXPECT_EQ(registrar.missing(), "ranks 1, 2, 3 and 4");
  (void)registrar.admit(introduction_of(2, 5));
  EXPECT_EQ(registrar.missing(), "ranks 1, 3 and 4");
  (void)registrar.admit(introduction_of(1, 5));
  (void)registrar.admit(introduction_of(3, 5));
  EXPECT_EQ(registrar.missing(), "rank 4");
  EXPECT_TRUE(says(registrar.overdue(milliseconds(1500)).message, "rank 4 of 5 did not come within 1.5 s"));
  EXPECT_TRUE(
      says(registrar.gone(2, "reset").message, "rank 2 was lost while joining (reset) while rank 4 had not come yet"));
  EXPECT_EQ(Registrar(introduction_of(0, 1000)).missing(), "ranks 1, 2, 3, 4, 5, 6, 7, 8 and 991 others");
}

TEST(Joiner, EndsWithTheTable) {
  Joiner joiner(1, 2);
  joiner.received(Waiting{"nobody"});
  EXPECT_FALSE(joiner.table() || joiner.error());
  joiner.received(Table{{}, {introduction_of(0, 2).member, introduction_of(1, 2).member}});
  EXPECT_TRUE(joiner.table());
  joiner.closed("late");
  EXPECT_FALSE(joiner.error());
}

TEST(Joiner, TriesAgainWhereItWasNotTakenIn) {
  Joiner early(1, 2), late(1, 2);
  early.closed("reset");
  EXPECT_EQ(early.try_again(), "it hung up before it had said anything: reset");
  EXPECT_FALSE(early.error());
  late.received(Waiting{"rank 2"});
  late.closed("reset");
  EXPECT_TRUE(late.try_again().empty());
  ASSERT_TRUE(late.error());
  EXPECT_EQ(late.error()->code, ErrorCode::peer_lost);
  EXPECT_TRUE(says(late.error()->what(), "rank 0 was lost while ranks were joining (reset)"));
}

TEST(Joiner, RefusesATableThatMakesNoSense) {
  for (const auto& members : std::vector<std::vector<Member>>{{}, {{0}}, {{1}, {0}}, {{0}, {1}, {2}}}) {
    Joiner joiner(1, 2);
    joiner.received(Table{{}, members});
    EXPECT_FALSE(joiner.table());
    EXPECT_TRUE(joiner.error());
  }
}

TEST(Joiner, RefusesAnAnnouncementBeyondItsBound) {
  Joiner joiner(1, 2);
  joiner.received(Table{
      {}, {introduction_of(0, 2).member, introduction_of(1, 2).member}, std::string(kMaxAnnouncedBytes + 1, 'x')});
  EXPECT_FALSE(joiner.table());
  EXPECT_TRUE(joiner.error());
}

TEST(Joiner, EndsWithTheHubsRefusal) {
  Joiner joiner(1, 2);
  joiner.received(Refusal{ErrorCode::invalid_argument, 7, "rank 7 is outside"});
  joiner.closed("after that");
  ASSERT_TRUE(joiner.error());
  EXPECT_EQ(joiner.error()->code, ErrorCode::invalid_argument);
  EXPECT_EQ(joiner.error()->peer, 7);
  EXPECT_EQ(joiner.error()->rank, 1);
  EXPECT_STREQ(joiner.error()->what(), "rank 1 could not join: rank 7 is outside");
}

TEST(Joiner, KnowsWhoIsMissingWhenItsTimeIsOver) {
  Joiner joiner(1, 3);
  EXPECT_TRUE(says(joiner.overdue(milliseconds(10)).what(), "not every rank came within 0.01 s"));
  joiner.received(Waiting{"rank 2"});
  const Error error = joiner.overdue(milliseconds(60'000));
  EXPECT_EQ(error.code, ErrorCode::timeout);
  EXPECT_TRUE(says(error.what(), "rank 2 did not come within 60 s"));
}

}  // namespace
}  // namespace tutti::internal
