// Where ranks meet: a place at which nobody is, and places as they are written.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include "control/control_ranks.h"
#include "net/handshake.h"
#include "tutti/store.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;

TEST(ControlJoin, ARankBeyondTheSizeSaysSoSoonWhereRank0IsNotThere) {
  for (int way = 0; way < 3; ++way) {
    Settings settings = job(2, way == 1 ? "s3cret" : "")[1];
    settings.rank = 5;
    settings.connect_timeout = milliseconds(200);
    const auto store = make_memory_store();
    const auto start = Clock::now();
    const Outcome rank = join(settings, way == 2 ? store.get() : nullptr);
    EXPECT_LT(Clock::now() - start, milliseconds(10'000));
    ASSERT_TRUE(rank.error);
    EXPECT_EQ(rank.error->code, ErrorCode::invalid_argument);
    EXPECT_TRUE(rank.says("rank 5 could not join: rank 5 is outside 0..1, the job having 2 ranks")) << rank.message();
  }
}

TEST(ControlJoin, AnAddressInBracketsIsAnAddress) {
  auto settings = job(2, "s3cret");
  for (Settings& s : settings) s.master_address = "[127.0.0.1]";
  auto ranks = join_all(settings);
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

// A job that is over only when its ranks have ended: those of the next attempt wait for that.
TEST(ControlJoin, RanksOfTheNextAttemptWaitForTheEndOfTheOneThatRuns) {
  auto first = job(2, "s3cret");
  auto running = join_all(first);
  for (const Outcome& rank : running) ASSERT_TRUE(rank.control) << rank.message();
  Settings next = first[1];
  next.attempt = 1;
  Outcome second;
  std::thread waiting([&] { second = join(next); });
  std::this_thread::sleep_for(milliseconds(300));
  leave_all(running);
  Settings zero = first[0];
  zero.attempt = 1;
  std::vector<Outcome> again(1);
  again[0] = join(zero);
  waiting.join();
  again.push_back(std::move(second));
  for (const Outcome& rank : again) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(again);
}

// The connection of a rank that has shaken hands with a rank 0, which says nothing more. If it is closed then, that is
// as if the attempt of that rank 0 had just ended.
Socket take_caller_as_rank_0(const Socket& listener, const std::string& secret) {
  const auto has_input = [](const Socket& socket) {
    pollfd entry{socket.fd(), POLLIN, 0};
    return poll(&entry, 1, 10'000) == 1;
  };
  int error = 0;
  Socket caller = has_input(listener) ? accept_from(listener.fd(), error) : Socket();
  auto handshake = Handshake::accepting({.size = 2, .control_key = secret, .takes_control = true}, random_digest());
  while (caller && handshake.wanted() > 0 && has_input(caller)) {
    std::byte piece[64];
    const ssize_t got = recv(caller.fd(), piece, std::min(sizeof piece, handshake.wanted()), 0);
    if (got <= 0) break;
    handshake.feed(std::span(piece).first(static_cast<std::size_t>(got)));
    const auto out = handshake.take_output();
    EXPECT_EQ(send(caller.fd(), out.data(), out.size(), MSG_NOSIGNAL), static_cast<ssize_t>(out.size()));
  }
  EXPECT_TRUE(handshake.done());
  return caller;
}

TEST(ControlJoin, ARankThatAnEndingRankZeroHungUpOnGoesToTheNextOne) {
  const auto settings = job(2, "s3cret");
  std::vector<Outcome> ranks(2);
  std::thread member([&] { ranks[1] = join(settings[1]); });
  take_caller_as_rank_0(listen_at(loopback().with_port(settings[0].master_port)), "s3cret");
  ranks[0] = join(settings[0]);
  member.join();
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

TEST(ControlJoin, ARankOfAnAttemptThatIsOverIsRefusedAndTheJobGoesOn) {
  auto settings = job(2, "s3cret");
  for (Settings& s : settings) s.attempt = 2;
  Settings stale = settings[1];
  stale.attempt = 1;
  std::vector<Outcome> ranks(2);
  std::thread zero([&] { ranks[0] = join(settings[0]); });
  const Outcome refused = join(stale);
  ranks[1] = join(settings[1]);
  zero.join();
  ASSERT_TRUE(refused.error);
  EXPECT_EQ(refused.error->code, ErrorCode::refused);
  EXPECT_TRUE(refused.says("of attempt 1 of the job, rank 0 of attempt 2: the job was started again without it"));
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

// In two jobs: rank 0 of the one puts it off again and again, that of the other hangs up once, and then never answers.
TEST(ControlJoin, ARankThatWaitsForTheNextAttemptInVainSaysWhy) {
  const auto first = job(2, "s3cret"), other = job(2, "s3cret");
  auto running = join_all(first);
  std::vector<Settings> next{first[1], other[1]};
  for (Settings& s : next) {
    s.attempt = 1;
    s.join_timeout = milliseconds(3000);
  }
  const Socket listener = listen_at(loopback().with_port(other[0].master_port));
  std::vector<Outcome> late;
  std::thread waiting([&] { late = join_all(next); });
  take_caller_as_rank_0(listener, "s3cret");  // and hang up
  const Socket silent = take_caller_as_rank_0(listener, "s3cret");
  waiting.join();
  for (const Outcome& rank : late) {
    EXPECT_TRUE(rank.error && rank.error->code == ErrorCode::unreachable) << rank.message();
  }
  EXPECT_TRUE(late[0].says("of attempt 1 of the job, rank 0 of attempt 0, which has not ended yet"))
      << late[0].message();
  EXPECT_TRUE(late[1].says("it hung up before it had said anything")) << late[1].message();
  leave_all(running);
}

}  // namespace
}  // namespace tutti::internal
