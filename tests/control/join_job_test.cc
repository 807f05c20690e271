#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control_ranks.h"
#include "topology/processors.h"
#include "tutti/store.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;
using Clock = std::chrono::steady_clock;

int entries_of(const char* directory) {
  DIR* open = opendir(directory);
  int count = 0;
  while (readdir(open)) ++count;
  closedir(open);
  return count;
}
int open_files() { return entries_of("/proc/self/fd"); }
int threads() { return entries_of("/proc/self/task"); }

// The addresses on which this process listens to the network.
std::vector<Endpoint> listening() {
  std::vector<Endpoint> found;
  for (int fd = 0; fd < 1024; ++fd) {
    int accepting = 0;
    socklen_t bytes = sizeof accepting;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepting, &bytes) == 0 && accepting && !own_end(fd).is_local())
      found.push_back(own_end(fd));
  }
  return found;
}

void expect_all_joined(const std::vector<Outcome>& outcomes) {
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    ASSERT_TRUE(outcomes[r].control) << outcomes[r].message();
    ASSERT_EQ(outcomes[r].control->rank(), static_cast<int>(r));
    const auto& members = outcomes[r].control->members();
    ASSERT_EQ(members.size(), outcomes.size());
    for (std::size_t m = 0; m < members.size(); ++m) {
      EXPECT_EQ(members[m].rank, static_cast<int>(m));
      EXPECT_EQ(members[m].host_id, host_id());
      EXPECT_EQ(members[m].pid, getpid());
      EXPECT_EQ(topology::from_bits(members[m].processors), topology::allowed_processors());
      EXPECT_EQ(members[m].local_name, outcomes[0].control->members()[m].local_name);
      EXPECT_EQ(members[m].address, outcomes[0].control->members()[m].address);
      EXPECT_EQ(members[m].port, outcomes[0].control->members()[m].port);
    }
  }
}

// The place exists before any rank joins: others may be there first.
TEST(ControlJoin, RanksMeetWhereTheyHaveAgreedToBefore) {
  for (const Endpoint& where : {loopback(), Endpoint::local("tutti-test-" + std::to_string(getpid()))}) {
    Socket listener = where.is_local() ? listen_at(where) : listen_in(where, 0, 0);
    const Endpoint place = own_end(listener.fd());
    std::vector<Outcome> outcomes(3);
    std::vector<std::thread> threads;
    for (int r = 2; r >= 0; --r)
      threads.emplace_back([&, r] {
        if (r == 0) std::this_thread::sleep_for(milliseconds(50));
        Settings settings;
        settings.rank = r;
        settings.size = 3;
        settings.secret = "not looked at " + std::to_string(r);
        Appointment appointment{place, "s3cret", r == 0 ? std::move(listener) : Socket()};
        try {
          outcomes[static_cast<std::size_t>(r)].control = join_job(settings, nullptr, {}, {}, std::move(appointment));
        } catch (const Error& error) {
          outcomes[static_cast<std::size_t>(r)].error = error;
        }
      });
    for (std::thread& thread : threads) thread.join();
    expect_all_joined(outcomes);
    leave_all(outcomes);
  }
}

TEST(ControlJoin, EveryRankGetsTheSameTableHoweverTheyMeet) {
  for (const int n : {2, 3, 6}) {
    for (const std::string secret : {"", "s3cret"}) {
      auto ranks = join_all(job(n, secret));
      expect_all_joined(ranks);
      leave_all(ranks);
    }
    const auto store = make_memory_store();
    auto ranks = join_all(job(n), store.get());
    expect_all_joined(ranks);
    leave_all(ranks);
  }
}

TEST(ControlJoin, NothingListensWiderThanTheLoopbackOnOneHost) {
  for (int way = 0; way < 3; ++way) {
    const auto store = make_memory_store();
    auto ranks = join_all(job(3, way == 1 ? "s3cret" : ""), way == 2 ? store.get() : nullptr);
    expect_all_joined(ranks);
    EXPECT_EQ(listening().size(), 3u);
    for (const Endpoint& endpoint : listening()) EXPECT_TRUE(endpoint.is_loopback()) << endpoint.text();
    leave_all(ranks);
    EXPECT_TRUE(listening().empty());
  }
}

TEST(ControlJoin, SharedMemoryOnlyListensToNoNetworkAtAll) {
  auto settings = job(3);
  for (Settings& s : settings) s.transport = "shm";
  auto ranks = join_all(settings);
  expect_all_joined(ranks);
  EXPECT_TRUE(listening().empty());
  leave_all(ranks);
}

TEST(ControlJoin, PortsAndInterfaceArePinned) {
  auto settings = job(3, "s3cret");
  const std::uint16_t first = free_port();
  for (Settings& s : settings) {
    s.interface = "lo";
    s.port_first = first;
    s.port_last = static_cast<std::uint16_t>(std::min(first + 20, 65535));
  }
  auto ranks = join_all(settings);
  expect_all_joined(ranks);
  for (int r = 1; r < 3; ++r) {
    const Member& member = ranks[0].control->members()[static_cast<std::size_t>(r)];
    EXPECT_GE(member.port, first);
    EXPECT_LE(member.port, first + 20);
    EXPECT_EQ(member.address, "127.0.0.1");
  }
  leave_all(ranks);
}

TEST(ControlJoin, MeetsOverIpv6) {
  int error = 0;
  try {
    listen_at(*Endpoint::parse("::1", free_port()));
  } catch (const Error&) {
    error = 1;
  }
  if (error) GTEST_SKIP() << "this host has no IPv6 loopback";
  auto settings = job(3, "s3cret");
  for (Settings& s : settings) s.master_address = "::1";
  auto ranks = join_all(settings);
  expect_all_joined(ranks);
  EXPECT_EQ(ranks[1].control->members()[0].address, "::1");
  EXPECT_EQ(ranks[1].control->members()[2].address, "::1");
  leave_all(ranks);
}

TEST(ControlJoin, MembersWaitForALateRank0) {
  for (const std::string secret : {"", "s3cret"}) {
    const auto settings = job(3, secret);
    std::vector<Outcome> ranks(3);
    std::thread early([&] {
      auto two = join_all({settings[1], settings[2]});
      ranks[1] = std::move(two[0]);
      ranks[2] = std::move(two[1]);
    });
    std::this_thread::sleep_for(milliseconds(200));
    ranks[0] = join(settings[0]);
    early.join();
    expect_all_joined(ranks);
    leave_all(ranks);
  }
}

TEST(ControlJoin, AJobOfOneOpensNothing) {
  const int files = open_files(), running = threads();
  Settings alone;
  alone.rank = 0;
  alone.size = 1;
  const auto control = join_job(alone, nullptr, {});
  EXPECT_EQ(open_files(), files);
  EXPECT_LE(threads(), running);
  EXPECT_EQ(control->members().size(), 1u);
  alone.rank = 1;
  EXPECT_TRUE(join(alone).says("rank 1 is outside 0..0"));
}

TEST(ControlJoin, NothingIsLeftBehind) {
  auto warm = join_all(job(2));  // what libraries open once and keep
  leave_all(warm);
  const int files = open_files(), running = threads();
  for (int round = 0; round < 10; ++round) {
    auto ranks = join_all(job(4, round % 2 ? "s3cret" : ""));
    expect_all_joined(ranks);
    EXPECT_GT(open_files(), files);
    leave_all(ranks);
    auto disagreeing = job(2, "s3cret");
    disagreeing[1].transport = "tcp";
    EXPECT_TRUE(join_all(disagreeing)[0].error);
  }
  EXPECT_EQ(open_files(), files);
  // A thread that has been joined is listed until the system has done with it.
  for (int tries = 0; tries < 1000 && threads() > running; ++tries)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_LE(threads(), running);
}

// The error that all of these ranks get.
std::vector<Outcome> expect_told_to_all(const std::vector<Settings>& settings, const std::string& part) {
  auto ranks = join_all(settings);
  for (const Outcome& rank : ranks) {
    EXPECT_TRUE(rank.error && rank.error->code == ErrorCode::invalid_argument) << rank.message();
    EXPECT_TRUE(rank.says(part)) << rank.message();
  }
  return ranks;
}

TEST(ControlJoin, DisagreementsAreToldToEveryRank) {
  for (const std::string secret : {"", "s3cret"}) {
    auto settings = job(3, secret);
    settings[2].size = 4;
    expect_told_to_all(settings, "says that the job has 4 ranks, rank 0 says 3");
    settings = job(3, secret);
    settings[2].rank = 1;
    expect_told_to_all(settings, "two processes are rank 1");
    settings = job(3, secret);
    settings[2].rank = 7;
    expect_told_to_all(settings, "rank 7 (process " + std::to_string(getpid()) + ") is outside 0..2");
    settings = job(3, secret);
    settings[1].transport = "tcp";
    expect_told_to_all(settings, "transport 'tcp', rank 0 for 'auto'");
    settings = job(3, secret);
    settings[1].timeout = milliseconds(1500);
    expect_told_to_all(settings, "a timeout of 1.5 s, rank 0 of 600 s");
  }
}

TEST(ControlJoin, DisagreementsThroughAStoreAreToldToEveryRank) {
  auto settings = job(3);
  settings[2].size = 4;
  const auto store = make_memory_store();
  for (const Outcome& rank : join_all(settings, store.get()))
    EXPECT_TRUE(rank.says("says that the job has 4 ranks, rank 0 says 3")) << rank.message();
}

TEST(ControlJoin, ARankThatCannotListenTellsTheOthers) {
  const Socket taken = listen_in(loopback(), 0, 0);  // first, so that rank 0 gets another port
  auto settings = job(3, "s3cret");
  settings[2].port_first = settings[2].port_last = own_end(taken.fd()).port();
  for (const Outcome& rank : join_all(settings)) EXPECT_TRUE(rank.says("TUTTI_PORTS")) << rank.message();
}

// Rank 0 stays for connect_timeout to tell it.
TEST(ControlJoin, ARankThatComesLateHearsWhyThereIsNoJob) {
  const Socket taken = listen_in(loopback(), 0, 0);
  auto refused = job(3, "s3cret"), unable = job(3, "s3cret");
  refused[2].transport = "tcp";
  unable[2].port_first = unable[2].port_last = own_end(taken.fd()).port();
  refused[0].connect_timeout = unable[0].connect_timeout = milliseconds(20'000);
  std::vector<Outcome> early;
  std::thread begins([&] { early = join_all({refused[0], refused[2], unable[0], unable[2]}); });
  std::this_thread::sleep_for(milliseconds(1500));
  auto late = join_all({refused[1], unable[1]});
  begins.join();
  for (const Outcome* rank : {&early[0], &early[1], &late[0]})
    EXPECT_TRUE(rank->says("transport 'tcp', rank 0 for 'auto'")) << rank->message();
  for (const Outcome* rank : {&early[2], &early[3], &late[1]})
    EXPECT_TRUE(rank->says("TUTTI_PORTS")) << rank->message();
}

// Rank 0 says it. Rank 2 has more time, so that it is still there to hear it.
void expect_missing_ranks_are_named(int way) {
  auto settings = job(4, way == 1 ? "s3cret" : "");
  settings[0].join_timeout = milliseconds(3000);
  const auto store = make_memory_store();
  const auto start = Clock::now();
  for (const Outcome& rank : join_all({settings[0], settings[2]}, way == 2 ? store.get() : nullptr)) {
    EXPECT_TRUE(rank.error && rank.error->code == ErrorCode::timeout);
    EXPECT_TRUE(rank.says(way == 2 ? "rank 1 did not come within 3 s" : "ranks 1 and 3 of 4 did not come within 3 s"))
        << rank.message();
  }
  EXPECT_GE(Clock::now() - start, milliseconds(2990));
  EXPECT_LT(Clock::now() - start, milliseconds(15'000));
}

TEST(ControlJoin, MissingRanksAreNamedWhenTheTimeIsOver) {
  std::vector<std::thread> ways;
  for (int way = 0; way < 3; ++way) ways.emplace_back(&expect_missing_ranks_are_named, way);
  for (std::thread& way : ways) way.join();
}

TEST(ControlJoin, AWrongSecretIsRefusedAndTheRightOneStillJoins) {
  const auto settings = job(2, "s3cret");
  auto wrong = settings[1];
  wrong.secret = "guess";
  std::vector<Outcome> ranks(2);
  std::thread zero([&] { ranks[0] = join(settings[0]); });
  for (int attempt = 0; attempt < 3; ++attempt) {
    const Outcome refused = join(wrong);
    ASSERT_TRUE(refused.error);
    EXPECT_EQ(refused.error->code, ErrorCode::refused);
    EXPECT_TRUE(refused.says("the secret of rank 1 differs from rank 0's: check TUTTI_SECRET")) << refused.message();
  }
  ranks[1] = join(settings[1]);
  zero.join();
  expect_all_joined(ranks);
  leave_all(ranks);
}

TEST(ControlJoin, ASecondProcessOfARunningRankIsTurnedAwayAlone) {
  const auto settings = job(2, "s3cret");
  auto ranks = join_all(settings);
  const Outcome second = join(settings[1]);
  EXPECT_TRUE(second.error && second.error->code == ErrorCode::refused);
  EXPECT_TRUE(second.says("is complete and running")) << second.message();
  expect_all_joined(ranks);
  leave_all(ranks);
}

TEST(ControlJoin, AMasterThatIsNotThereIsNamed) {
  auto settings = job(2, "s3cret");
  settings[1].join_timeout = milliseconds(300);
  Outcome rank = join(settings[1]);
  ASSERT_TRUE(rank.error && rank.error->code == ErrorCode::unreachable);
  EXPECT_TRUE(rank.says("127.0.0.1:" + std::to_string(settings[1].master_port) + " within 0.3 s (Connection refused)"))
      << rank.message();
  settings[1].master_address = "no-such-host.invalid";
  rank = join(settings[1]);
  EXPECT_TRUE(rank.says("does not resolve")) << rank.message();
}

TEST(ControlJoin, WhatCannotWorkIsRefusedAtOnce) {
  auto s = job(2, "s3cret")[0];
  const auto refusal = [](Settings settings, auto change) {
    change(settings);
    return join(settings).message();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.interface = "nosuch0"; }), "no network interface 'nosuch0'"));
  EXPECT_TRUE(has(refusal(s,
                          [](Settings& x) {
                            x.interface = "lo";
                            x.master_address = "127.0.0.2";
                          }),
                  "nobody could reach it"));
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.transport = "udp"; }), "transport \"udp\""));
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.master_port = 0; }), "TUTTI_MASTER=host:port"));
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.size = 1'000'000; }), "from 1 to 65536"));
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.rank = -1; }), "rank -1 is outside 0..1"));
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.master_address = "192.0.2.55"; }), "no address of this host"));
  s.secret.clear();
  EXPECT_TRUE(has(refusal(s, [](Settings& x) { x.master_address = "192.0.2.55"; }), "set the same TUTTI_SECRET"));
}

TEST(ControlJoin, APortThatIsTakenIsNamed) {
  const auto settings = job(2, "s3cret");
  const Socket other = listen_at(loopback().with_port(settings[0].master_port));
  const Outcome rank = join(settings[0]);
  EXPECT_TRUE(rank.says("Address already in use") && rank.says(std::to_string(settings[0].master_port)))
      << rank.message();
}

TEST(ControlJoin, AMasterOfSomethingElseIsNamed) {
  auto settings = job(2, "s3cret");
  settings[1].connect_timeout = milliseconds(200);
  const Socket other = listen_at(loopback().with_port(settings[0].master_port));
  std::atomic<bool> over{false};
  std::thread web_server([&] {
    while (!over) {
      int error = 0;
      const Socket caller = accept_from(other.fd(), error);
      if (caller) {
        EXPECT_GT(write(caller.fd(), "HTTP/1.1 400 Bad Request\r\n", 26), 0);
      }
      std::this_thread::sleep_for(milliseconds(5));
    }
  });
  const Outcome rank = join(settings[1]);
  over = true;
  web_server.join();
  EXPECT_TRUE(rank.says("is not rank 0: it does not speak tutti's protocol (it says 'HTTP/1.1 400 Bad')"))
      << rank.message();
}

}  // namespace
}  // namespace tutti::internal
