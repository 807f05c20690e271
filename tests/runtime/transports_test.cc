// Which transport reaches which rank, and a job over one that the library does not have.
#include "runtime/transports.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "runtime/ranks.h"
#include "transport/registry.h"
#include "transport/unix_socket/connector.h"

namespace tutti::internal {
namespace {

using internal::Member;
using internal::Transports;
using testing::ElementsAre;
using testing::HasSubstr;

const bool kRegistered = (register_transport({"unix_socket", unix_socket::make_connector}), true);

std::vector<Member> members(const std::vector<std::string>& hosts) {
  std::vector<Member> all;
  for (const std::string& host : hosts) all.push_back({.rank = static_cast<int>(all.size()), .host_id = host});
  return all;
}

// What a rank 0 of these hosts chooses.
struct Choice {
  Choice(const std::string& transport, const std::vector<Member>& all)
      : settings{.rank = 0, .size = static_cast<int>(all.size()), .transport = transport},
        transports(settings, log, sleeper) {
    transports.begin(all, false);
  }
  Settings settings;
  internal::Log log{settings};
  Sleeper sleeper;
  Transports transports;
};

std::vector<Member> with_obstacles(std::vector<Member> all, int rank, const std::string& obstacles) {
  all[rank].obstacles = obstacles;
  return all;
}

TEST(Transports, JoinEachRankByTheFirstKindThatReachesIt) {
  auto all = members({"a", "a", "b", "b"});
  for (int rank : {2, 3})
    all = with_obstacles(all, rank, "other: x\nverbs: port " + std::to_string(rank) + " is down\n");
  Choice choice("auto", all);
  EXPECT_EQ(choice.transports.describe(),
            "transports: shm to 1 tcp to 2 (TUTTI_TRANSPORT: auto; no verbs, as of rank 2: port 2 is down)");
  EXPECT_THAT(choice.transports.hosts(), ElementsAre(0, 0, 1, 1));
  EXPECT_FALSE(choice.transports.wakes_sleepers());
  EXPECT_EQ(choice.transports.used().size(), 2U);
}

TEST(Transports, CountRanksAsOfOneHostWhereTheySoShareMemoryOnly) {
  Choice tcp("tcp", members({"a", "a", "b"}));
  EXPECT_THAT(tcp.transports.hosts(), ElementsAre(3, 4, 5));
  EXPECT_TRUE(tcp.transports.wakes_sleepers());
  EXPECT_EQ(tcp.transports.describe(), "transports: tcp to 2 (TUTTI_TRANSPORT: tcp)");
}

TEST(Transports, ThatTheSettingsNameAndThatDoNotDoAreAnError) {
  const auto fails = [](const std::string& transport, const std::vector<Member>& all) -> std::string {
    try {
      Choice choice(transport, all);
    } catch (const Error& error) {
      EXPECT_EQ(error.peer, transport == "verbs" ? 1 : -1);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fails("shm", members({"a", "b"})), "transport shm: not all ranks share a host; use auto or tcp");
  EXPECT_EQ(fails("verbs", with_obstacles(members({"a", "b"}), 1, "verbs: no device\n")),
            "transport verbs: rank 1 cannot use it: no device");
  EXPECT_EQ(fails("unix_socket", members({"a", "b"})), "transport unix_socket: not all ranks share a host");
}

TEST(Transports, OfARankAloneAreNone) {
  Choice alone("auto", members({"a"}));
  EXPECT_EQ(alone.transports.describe(), "transports: none (TUTTI_TRANSPORT: auto)");
  EXPECT_EQ(alone.transports.used().size(), 1U);  // its memory is as others' is
  EXPECT_NE(alone.transports.allocate(100)->data(), nullptr);
}

TEST(Transports, CountARankThatCannotShareMemoryAsAHostOfItsOwn) {
  Choice choice("auto", with_obstacles(members({"a", "a", "a"}), 1, "shm: no memory\nverbs: no port\n"));
  EXPECT_THAT(choice.transports.hosts(), ElementsAre(0, 4, 0));
  EXPECT_EQ(choice.transports.describe(),
            "transports: shm to 1 tcp to 1 (TUTTI_TRANSPORT: auto; no shm, as of rank 1: no memory)");
}

TEST(Transports, ThatAreNewCarryWholeJobs) {
  const Settings settings{.secret = "of a test", .transport = "unix_socket"};
  const auto thrown = outcomes(3, settings, [](Communicator& world) {
    for (const std::size_t count : {0U, 1U, 1000U, 300'000U}) {
      std::vector<std::int64_t> values(count);
      std::iota(values.begin(), values.end(), world.rank());
      world.all_reduce(std::span(values), Op::sum);
      for (std::size_t i = 0; i < count; i += 997) ASSERT_EQ(values[i], static_cast<std::int64_t>(3 * i + 3));
    }
    world.split(world.rank() % 2, 0).barrier();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST(Transports, ThatNobodyKnowsAreRefusedWithTheirNames) {
  const auto thrown = outcomes(1, Settings{.secret = "of a test", .transport = "pigeon"}, [](Communicator&) {});
  ASSERT_TRUE(thrown[0]);
  EXPECT_THAT(thrown[0]->what(), HasSubstr("should be auto, shm, verbs, tcp or unix_socket"));
}

}  // namespace
}  // namespace tutti::internal
