#include "control/seat.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>

#include "brief.h"
#include "control/agreement.h"
#include "control/simulated_job.h"

namespace tutti::internal {
namespace {

using std::chrono::milliseconds;
using Kind = Notice::Kind;

TEST(Seat, AnswersPingsAndProbes) {
  Seat member(1, {0, 1, 2}, kUsual, {});
  auto history = std::make_shared<CallHistory>();
  const auto enter = [&](std::uint32_t sequence) {
    history->begins(sequence, Tag{{10 * sequence, 10 * sequence + 1}});
    history->entered(sequence);
  };
  enter(6);
  history->completed(6);
  enter(7);
  member.histories().publish(9, history);
  member.received(0, Ping{}, after(1));
  EXPECT_EQ(std::get<Ping>(member.take_outgoing().at(0).message).known, 0u);
  const auto answer_to = [&](std::uint64_t communicator, std::uint32_t sequence) {
    member.received(0, Probe{2, 1, communicator, communicator, sequence}, after(2));
    const auto out = member.take_outgoing();
    EXPECT_EQ(std::get<Answer>(out.at(0).message).to, 2);
    return std::get<Answer>(out.at(0).message).notice;
  };
  EXPECT_TRUE(answer_to(9, 7).entered);
  EXPECT_EQ(answer_to(9, 7).call, (Tag{{7ull << 32 | 70, 71}}));
  EXPECT_EQ(answer_to(9, 7).last, (Tag{{6ull << 32 | 60, 61}}));
  EXPECT_FALSE(answer_to(9, 8).entered);
  EXPECT_EQ(answer_to(9, 8).sequence, 8u);
  EXPECT_FALSE(answer_to(10, 7).entered);
  constexpr std::uint32_t kLast = 7 + CallHistory::kKept;
  for (std::uint32_t s = 8; s <= kLast; ++s) enter(s);
  EXPECT_TRUE(answer_to(9, 7).entered);  // too long ago to say which
  EXPECT_EQ(answer_to(9, 7).call, Tag{});
  EXPECT_FALSE(answer_to(9, 7).has_left);
  member.histories().unpublish(9);
  EXPECT_TRUE(answer_to(9, kLast).entered);
  EXPECT_TRUE(answer_to(9, kLast).has_left);
  EXPECT_FALSE(answer_to(9, kLast + 1).entered);
}

TEST(Seat, RemembersTheCommunicatorsThatItHasLeftLately) {
  Seat member(1, {0, 1, 2}, kUsual, {});
  for (std::uint64_t communicator = 1; communicator <= 300; ++communicator) {
    member.histories().publish(communicator, std::make_shared<CallHistory>());
    member.histories().unpublish(communicator);
  }
  const auto has_left = [&](std::uint64_t communicator) {
    member.received(0, Probe{2, 1, communicator, communicator, 1}, after(1));
    return std::get<Answer>(member.take_outgoing().at(0).message).notice.has_left;
  };
  EXPECT_TRUE(has_left(300));
  EXPECT_TRUE(has_left(200));
  EXPECT_FALSE(has_left(1));
}

TEST(Seat, HasLeftTheLanesOfACommunicatorThatItHasLeft) {
  Seat member(1, {0, 1, 2}, kUsual, {});
  member.histories().publish(9, std::make_shared<CallHistory>());
  member.histories().publish(91, std::make_shared<CallHistory>());
  const auto has_left = [&](std::uint64_t lane) {
    member.received(0, Probe{2, 1, lane, 9, 1}, after(1));
    return std::get<Answer>(member.take_outgoing().at(0).message).notice.has_left;
  };
  EXPECT_FALSE(has_left(92));
  member.histories().unpublish(9);
  EXPECT_TRUE(has_left(92));   // it never made this one
  EXPECT_FALSE(has_left(91));  // whose calls go on
  member.histories().unpublish(91);
  EXPECT_TRUE(has_left(91));
}

// To the next hub, so that it does not count the vote; and a vote that is said behind it stays.
TEST(Seat, SaysARecallAgainUntilItIsAnswered) {
  Seat seat(2, {0, 1, 2}, kUsual, {});
  const Vote vote{.communicator = 5, .ranks = {0, 1, 2}};
  seat.request(vote, after(1));
  seat.request(Recall{5, vote.on, 1}, after(2));
  seat.request(vote, after(3));
  seat.closed(0, "closed", Evidence::closing, after(4));
  seat.take_outgoing();
  seat.connected(after(5));
  std::vector<std::size_t> kinds;
  for (const Outgoing& out : seat.take_outgoing()) kinds.push_back(out.message.index());
  const auto index = [](const ControlMessage& message) { return message.index(); };
  EXPECT_EQ(kinds, (std::vector{index(Enlistment{}), index(vote), index(Recall{}), index(vote)}));
  Notice answer{.kind = Kind::absent, .peer = 2, .communicator = 5, .sequence = 7};
  seat.received(1, answer, after(6));  // to an earlier recall
  answer.sequence = 1;
  seat.received(1, answer, after(7));
  EXPECT_FALSE(seat.is_settled());
  seat.request(Recall{5, vote.on, 2}, after(8));
  answer.sequence = 2;
  seat.received(1, answer, after(9));
  EXPECT_TRUE(seat.is_settled());
}

// --- several seats

TEST(Seat, ADeathIsHeardWithin100Milliseconds) {
  for (const bool child : {false, true})
    for (const auto& hosts :
         {std::vector{0, 0, 0, 0}, std::vector{0, 1, 2, 3}, std::vector{0, 0, 1, 1}, std::vector{0, 1, 0, 1}})
      for (int victim = 0; victim < 4; ++victim) {
        const bool is_near = std::ranges::count(hosts, hosts[static_cast<std::size_t>(victim)]) > 1;
        if (child && !is_near) continue;  // only silence tells of it
        SimulatedJob job(hosts, kUsual, 1);
        job.run(milliseconds(1000));
        job.kill(victim, child);
        job.run(milliseconds(100));
        for (int rank = 0; rank < 4; ++rank) {
          if (rank == victim) continue;
          EXPECT_TRUE(job.has_heard(rank, Kind::lost, victim)) << rank << " of " << victim << (child ? ", fork" : "");
        }
        expect_agreement(job);
      }
}

// The second would be the hub, and nobody but the first has watched it so far.
TEST(Seat, TwoHubsThatDieAtOnceAreHeardOfWithin150Milliseconds) {
  for (const bool child : {false, true}) {
    SimulatedJob job(one_host(4), kUsual, 1);
    job.run(milliseconds(1000));
    job.kill(0);
    job.kill(1, child);
    job.run(milliseconds(150));
    for (int rank = 2; rank < 4; ++rank)
      EXPECT_TRUE(job.has_heard(rank, Kind::lost, 0) && job.has_heard(rank, Kind::lost, 1)) << child;
    expect_agreement(job);
  }
}

// The members of the other host see an open connection to rank 0, and no host knows of both deaths.
TEST(Seat, ADeathThatAChildHidesIsHeardOfAlsoIfTheNextHubOfAnotherHostDies) {
  for (const bool child : {false, true}) {
    SimulatedJob job({0, 1, 0, 1, 1, 1}, kUsual, 1);
    job.run(milliseconds(1000));
    job.kill(0, true);
    job.kill(1, child);
    job.run(milliseconds(child ? 6000 : 200));
    for (int rank = 2; rank < 6; ++rank)
      EXPECT_TRUE(job.has_heard(rank, Kind::lost, 0) && job.has_heard(rank, Kind::lost, 1)) << rank << " " << child;
    expect_agreement(job);
  }
}

// Rank 0 leaves, rank 1 too; what the others say is heard by all that are left.
TEST(Seat, TheNextRankIsTheHubWhenTheHubLeaves) {
  SimulatedJob job(one_host(5), kUsual, 3);
  job.run(milliseconds(100));
  job.leave(0);
  job.poison(3, 7, "said while the hub was leaving");
  job.run(milliseconds(50));
  EXPECT_TRUE(job.seat(0).is_over());
  job.leave(1);
  job.run(milliseconds(50));
  EXPECT_TRUE(job.seat(1).is_over());
  job.poison(4, 8, "why");
  job.run(milliseconds(50));
  for (int rank = 2; rank < 5; ++rank) {
    EXPECT_TRUE(job.has_heard(rank, Kind::left, 0) && job.has_heard(rank, Kind::left, 1));
    EXPECT_TRUE(job.has_heard(rank, Kind::poisoned, 3) && job.has_heard(rank, Kind::poisoned, 4));
    EXPECT_FALSE(std::ranges::any_of(job.heard(rank), [](const Notice& n) { return n.kind == Kind::lost; }));
  }
  expect_agreement(job);
  job.kill(3);
  job.run(milliseconds(100));
  EXPECT_TRUE(job.has_heard(2, Kind::lost, 3) && job.has_heard(4, Kind::lost, 3));
}

TEST(Seat, TheSideWithTheMajorityGoesOn) {
  SimulatedJob job({0, 0, 1, 1, 1}, kUsual, 4);
  job.run(milliseconds(1000));
  job.cut(0, 1);
  job.run(milliseconds(9000));
  for (int rank = 0; rank < 5; ++rank)
    for (int other = 0; other < 5; ++other) {
      const bool apart = (rank < 2) != (other < 2);
      EXPECT_EQ(job.has_heard(rank, Kind::lost, other), apart) << rank << " of " << other;
    }
  for (const Notice& event : job.events(0)) EXPECT_EQ(event.code, ErrorCode::partitioned);
  for (const Notice& event : job.events(4)) EXPECT_EQ(event.code, ErrorCode::peer_lost);
}

// The hub is silent, and the next rank is dead, which only its host knows: a child holds its port.
TEST(Seat, DoesNotWaitForANextHubOfWhoseDeathItsHostHasTold) {
  Seat seat(2, {0, 1, 0, 1}, kUsual, {});
  seat.received(3, Death{1}, after(1));
  seat.received(3, Death{0}, after(1));  // of another host: it cannot know
  EXPECT_EQ(seat.hub(), 0);
  seat.ended(0, after(2));
  EXPECT_TRUE(seat.is_hub());
}

// A rank whose hub was decided to be lost by a later one, that is lost itself, hears so from whoever had heard it.
TEST(Seat, HearsOfTheLossOfItsHubFromThoseThatComeToIt) {
  Seat seat(2, {0, 1, 1, 0}, kUsual, {});
  const Notice lost{.kind = Kind::lost,
                    .peer = 0,
                    .code = ErrorCode::peer_lost,
                    .message = died_by_kernel(),
                    .serial = 1,
                    .authority = Authority::kernel};
  seat.received(3, lost, after(1));  // it had enlisted with rank 1
  seat.received(3, Enlistment{1}, after(1));
  EXPECT_EQ(seat.hub(), 1);
  seat.ended(1, after(2));
  EXPECT_TRUE(seat.is_hub());
  seat.look(after(3));
  EXPECT_TRUE(seat.log().is_lost(0));
}

// They may have turned away meanwhile. What is said behind an enlistment counts, not what was said before it.
TEST(Seat, CountsAnOldEnlistmentOnceItsRankAnswers) {
  Seat seat(1, {0, 1, 2, 3}, kUsual, {});
  const Vote vote{.communicator = 7, .ranks = {1, 2}};
  seat.received(2, Enlistment{0}, after(1));
  seat.received(2, vote, after(1));
  seat.received(3, Enlistment{0}, after(1));
  seat.received(2, Enlistment{0}, after(2));
  seat.request(vote, after(3));
  seat.received(0, Notice{.kind = Kind::left, .peer = 0, .code = ErrorCode::peer_left, .serial = 1}, after(4));
  ASSERT_TRUE(seat.is_hub());
  const auto last_ping = [&seat] {
    std::optional<bool> is_open;
    for (const Outgoing& out : seat.take_outgoing())
      if (const auto* ping = std::get_if<Ping>(&out.message)) is_open = ping->is_open;
    return is_open;
  };
  EXPECT_EQ(last_ping(), false);
  seat.received(2, Ping{}, after(5));
  seat.tick(after(500));
  EXPECT_EQ(last_ping(), false);
  seat.received(3, Enlistment{1}, after(501));
  seat.tick(after(502));
  EXPECT_EQ(last_ping(), true);
  EXPECT_FALSE(seat.is_settled());  // only this rank has voted
}

TEST(Seat, IsNotOpenedByAnOldEnlistmentAlone) {
  Seat seat(1, {0, 1, 2}, kUsual, {});
  seat.received(2, Enlistment{0}, after(1));
  seat.received(0, Notice{.kind = Kind::left, .peer = 0, .code = ErrorCode::peer_left, .serial = 1}, after(4));
  seat.take_outgoing();
  seat.received(2, Withdrawal{}, after(5));  // it has gone back
  seat.tick(after(500));
  for (const Outgoing& out : seat.take_outgoing()) EXPECT_FALSE(std::holds_alternative<Ping>(out.message));
  seat.received(2, Enlistment{1}, after(501));
  seat.tick(after(1000));
  bool is_open = false;
  for (const Outgoing& out : seat.take_outgoing())
    if (const auto* ping = std::get_if<Ping>(&out.message)) is_open = ping->is_open;
  EXPECT_TRUE(is_open);
}

// The deaths of which a hub that is not open tells do not bind either.
TEST(Seat, GoesBackFromAHubThatHasToldOfDeathsOnly) {
  Seat seat(3, {0, 1, 1, 2}, kUsual, {});
  seat.closed(0, "gone", Evidence::silence, after(1));
  seat.closed(1, "refused", Evidence::closing, after(2));
  ASSERT_EQ(seat.hub(), 2);
  seat.connected(after(3));
  seat.received(2, Summons{}, after(4));
  seat.received(2, Death{1}, after(4));
  seat.received(2, Withdrawal{0}, after(5));
  EXPECT_EQ(seat.hub(), 0);
}

// A hub to which not all have come, and one with which this rank is no more.
TEST(Seat, IsNotDrawnAwayByAHubThatIsNotOpen) {
  Seat seat(3, {0, 1, 2, 3}, kUsual, {});
  seat.received(1, Ping{}, after(1));
  EXPECT_EQ(seat.hub(), 0);
  const auto out = seat.take_outgoing();
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(std::get<Withdrawal>(out[0].message).to, -1);
  seat.received(1, Ping{0, true}, after(2));
  EXPECT_EQ(seat.hub(), 1);
}

TEST(Seat, AllHaveMadeItOrNoneHas) {
  for (const int dead : {-1, 0, 2}) {
    SimulatedJob job(one_host(4), kUsual, 5);
    job.run(milliseconds(1000));
    if (dead >= 0) job.kill(dead);
    job.make(7);
    job.run(milliseconds(200));
    for (int rank = 0; rank < 4; ++rank) {
      if (rank == dead) continue;
      const auto events = job.events(rank);
      ASSERT_EQ(events.size(), 1u) << rank;
      EXPECT_EQ(events[0].kind, dead < 0 ? Kind::decided : Kind::lost);
      EXPECT_EQ(events[0].ranks.size(), dead < 0 ? 4u : 0u);
      EXPECT_TRUE(job.seat(rank).is_settled());
    }
  }
}

TEST(Seat, ForgetsTheEventsThatAllKnow) {
  SimulatedJob job({0, 0, 1}, kUsual, 6);
  for (std::uint64_t i = 0; i < 100; ++i) {
    job.make(i);
    job.run(milliseconds(100));
  }
  job.run(milliseconds(1500));
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(job.events(rank).size(), 100u);
    EXPECT_EQ(job.seat(rank).log().forgotten(), 100u);
  }
  job.stop(2);
  job.make(100);
  job.run(milliseconds(1500));
  EXPECT_EQ(job.events(0).size(), 100u);  // not all have voted
  job.kill(0);
  job.run(milliseconds(8000));
  job.make(101);
  job.run(milliseconds(1500));
  EXPECT_EQ(job.events(1).size(), 102u);  // two that are lost
  EXPECT_EQ(job.seat(1).log().forgotten(), 102u);
}

// Any faults at any time: whoever is left agrees, hears the verdict on all that it has said, and never hangs.
TEST(Seat, WhateverHappensTheRanksThatAreLeftAgree) {
  for (unsigned seed = 0; seed < (kBrief ? 5 : 250); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int ranks = 3 + static_cast<int>(random() % 6);
    const bool near = random() % 2 == 0;
    std::vector<int> hosts = one_host(ranks);
    for (int rank = 0; !near && rank < ranks; ++rank) hosts[static_cast<std::size_t>(rank)] = rank / 2;
    SimulatedJob job(hosts, kUsual, seed);
    job.run(milliseconds(random() % 1500));
    std::vector<int> stopped;
    std::set<int> touched, stood_still;
    const int faults = 1 + static_cast<int>(random() % 4);
    for (int fault = 0; fault < faults; ++fault) {
      const int rank = static_cast<int>(random() % static_cast<unsigned>(ranks));
      if (!job.runs(rank)) continue;
      if (random() % 2 == 0) job.make(100 + static_cast<unsigned>(fault));
      const unsigned what = random() % 6;
      if (what < 4) touched.insert(rank);
      if (what == 1 || what == 2) stood_still.insert(rank);
      switch (what) {
        case 0: job.kill(rank, near && random() % 2 == 0); break;
        case 1:
          job.stop(rank);
          stopped.push_back(rank);
          break;
        case 2:  // for about as long as it takes to be given up
          job.stop(rank);
          job.run(milliseconds(4500 + random() % 2500));
          job.go_on(rank);
          break;
        case 3: job.leave(rank); break;
        default: job.poison(rank, random() % 3, "as rank " + std::to_string(rank) + " says");
      }
      job.run(milliseconds(random() % 3 == 0 ? random() % 7000 : random() % 10));
    }
    job.run(milliseconds(25'000));
    for (const int rank : stopped) job.go_on(rank);
    job.run(milliseconds(10'000));
    expect_agreement(job);
    for (int rank = 0; rank < ranks; ++rank) {
      EXPECT_TRUE(touched.contains(rank) || !job.seat(rank).is_over()) << "rank " << rank;
      if (!job.runs(rank) || job.seat(rank).is_over()) continue;
      EXPECT_TRUE(job.seat(rank).is_settled()) << "rank " << rank;
      EXPECT_EQ(job.seat(rank).log().forgotten(), job.seat(rank).log().size()) << "rank " << rank;
      // Ranks that are no majority may have given up another one that stood still, or that is of another host.
      for (int other = 0; other < ranks; ++other) {
        const bool is_gone = job.seat(rank).log().is_gone(other);
        EXPECT_TRUE(is_gone || is_there(job, other)) << "rank " << rank << " of " << other;
        const bool may_differ = !near || stood_still.contains(rank) || stood_still.contains(other);
        EXPECT_FALSE(is_gone && is_there(job, other) && !may_differ) << "rank " << rank << " of " << other;
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
}

// One host is cut off for good, and something else happens. Whoever runs agrees with all on its side, and knows that
// the other side is lost.
TEST(Seat, WhicheverHostIsCutOffEachSideAgrees) {
  for (unsigned seed = 0; seed < (kBrief ? 3 : 100); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int hosts = 2 + static_cast<int>(random() % 3), ranks = hosts + static_cast<int>(random() % 4);
    std::vector<int> host_of;
    for (int rank = 0; rank < ranks; ++rank) host_of.push_back(rank * hosts / ranks);
    const int cut_off = static_cast<int>(random() % static_cast<unsigned>(hosts));
    SimulatedJob job(host_of, kUsual, seed);
    job.run(milliseconds(random() % 1500));
    if (random() % 3 == 0) job.kill(static_cast<int>(random() % static_cast<unsigned>(ranks)));
    if (random() % 3 == 0) job.leave(static_cast<int>(random() % static_cast<unsigned>(ranks)));
    job.run(milliseconds(random() % 20));
    for (int host = 0; host < hosts; ++host)
      if (host != cut_off) job.cut(host, cut_off);
    job.run(milliseconds(25'000));
    const auto is_on = [&](int rank, bool side) {
      return job.runs(rank) && !job.seat(rank).is_over() &&
             (host_of[static_cast<std::size_t>(rank)] == cut_off) == side;
    };
    for (const bool side : {false, true}) {
      std::optional<std::vector<int>> first;
      for (int rank = 0; rank < ranks; ++rank) {
        if (!is_on(rank, side)) continue;
        std::vector<int> events;
        for (const Notice& event : job.events(rank))
          events.insert(events.end(), {static_cast<int>(event.kind), event.peer, static_cast<int>(event.code)});
        if (!first) first = events;
        EXPECT_EQ(events, *first) << "rank " << rank;
        for (int other = 0; other < ranks; ++other)
          EXPECT_EQ(job.seat(rank).log().is_gone(other), !is_on(other, side)) << rank << " of " << other;
      }
    }
    if (::testing::Test::HasFailure()) break;
  }
}

// The network is away for about as long as it takes to notice. All go on then, or one side that is a majority does.
TEST(Seat, AfterACutThatHealsAMajorityGoesOn) {
  for (unsigned seed = 0; seed < (kBrief ? 5 : 250); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int hosts = 2 + static_cast<int>(random() % 3), ranks = hosts + static_cast<int>(random() % 4);
    std::vector<int> host_of;
    for (int rank = 0; rank < ranks; ++rank)
      host_of.push_back(rank < hosts ? rank : static_cast<int>(random() % static_cast<unsigned>(hosts)));
    const int cut_off = static_cast<int>(random() % static_cast<unsigned>(hosts));
    SimulatedJob job(host_of, kUsual, seed);
    job.run(milliseconds(random() % 1500));
    for (int host = 0; host < hosts; ++host)
      if (host != cut_off) job.cut(host, cut_off);
    job.run(milliseconds(3'000 + random() % 9'000));
    job.mend(milliseconds(seed % 2 == 0 ? 0 : random() % 1500));
    job.run(milliseconds(25'000));
    expect_agreement(job);
    int going_on = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      going_on += may_go_on(job, rank);
      for (const Notice& event : job.events(rank))  // one that was given up has closed all
        EXPECT_TRUE(event.authority == Authority::kernel || event.message == died("closed") ||
                    (event.code == ErrorCode::peer_lost) == may_go_on(job, rank))
            << event.message;
    }
    EXPECT_GE(2 * going_on, ranks);
    if (::testing::Test::HasFailure()) break;
  }
}

}  // namespace
}  // namespace tutti::internal
