// Jobs of one host whose loopback interface is not as usual.
#include <gtest/gtest.h>

#include "runtime/fake_hosts.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

class Loopback : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_make_hosts()) GTEST_SKIP() << "this process may not make network namespaces";
  }
};

constexpr char kOnlyIpv6[] = "ip link set lo up && ip address del 127.0.0.1/8 dev lo";

// What three ranks got that have called all_reduce, or the first error.
std::string all_reduce_on_three(const Settings& common) {
  std::vector<std::string> results(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank)
    threads.emplace_back([&, rank] {
      Settings settings = common;
      settings.rank = rank;
      settings.size = 3;
      settings.master_port = 29511;
      settings.join_timeout = std::chrono::seconds(20);
      try {
        auto world = Communicator::join(settings);
        float value = 1;
        world.all_reduce(std::span(&value, 1), Op::sum);
        results[rank] = std::to_string(static_cast<int>(value));
      } catch (const Error& error) {
        results[rank] = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  return results[0] + ", " + results[1] + ", " + results[2];
}

TEST_F(Loopback, RanksOfOneHostMeetWhereItHasIpv6Alone) {
  for (const std::string address : {"", "::1", "[::1]"})
    for (const std::string secret : {"", "s3cret"})
      EXPECT_TRUE(run_in_namespace(kOnlyIpv6, [&] {
        Settings settings;
        settings.master_address = address;
        settings.secret = secret;
        for (const char* transport : {"auto", "tcp"}) {
          settings.transport = transport;
          EXPECT_EQ(all_reduce_on_three(settings), "3, 3, 3") << address << " " << transport;
        }
      }));
}

TEST_F(Loopback, RanksOfOneHostMeetWhereItIsDown) {
  EXPECT_TRUE(run_in_namespace("true", [] {
    Settings settings;
    EXPECT_EQ(all_reduce_on_three(settings), "3, 3, 3");
    settings.master_address = "127.0.0.1";
    EXPECT_EQ(all_reduce_on_three(settings), "3, 3, 3");
  }));
}

TEST_F(Loopback, WhatNeedsItSaysAtOnceThatItIsDown) {
  EXPECT_TRUE(run_in_namespace("true", [] {
    const auto start = std::chrono::steady_clock::now();
    Settings settings;
    settings.transport = "tcp";
    EXPECT_NE(all_reduce_on_three(settings).find("ip link set lo up"), std::string::npos);
    settings.transport = "auto";
    settings.master_address = "127.0.0.1";
    settings.secret = "s3cret";
    EXPECT_NE(all_reduce_on_three(settings).find("ip link set lo up"), std::string::npos);
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  }));
}

}  // namespace
}  // namespace tutti::internal
