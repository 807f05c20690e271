// Sends and receives whose other end never made any: who hears of it, and when.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "runtime/ranks.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

constexpr auto kSoon = 20s;  // much longer than asking a peer takes, much shorter than the timeout
constexpr std::size_t kLarge = 4'000'000;

Settings with_transport(const std::string& transport) {
  Settings settings;
  settings.transport = transport;
  settings.timeout = 60s;
  return settings;
}

std::optional<Error> error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Over inproc there is nothing that joins by settings.
class Lanes : public testing::TestWithParam<std::string> {
 protected:
  // Two ranks, which are `waits` and the other one, of three. The other one leaves the communicator `after`, and stays
  // in the job until `call` is over.
  void expect_peer_left(int waits, std::chrono::milliseconds after, const std::function<void(Communicator&)>& call) {
    const int leaves = 1 - waits;
    std::promise<void> over;
    const auto thrown = outcomes(3, with_transport(GetParam()), [&](Communicator& world) {
      Communicator part = world.split(0);
      if (world.rank() == leaves) {
        std::this_thread::sleep_for(after);
        part.finalize();
        over.get_future().wait_for(70s);
      } else if (world.rank() == waits) {
        const auto begin = std::chrono::steady_clock::now();
        const auto error = error_of([&] { call(part); });
        EXPECT_LT(std::chrono::steady_clock::now() - begin, after + kSoon);
        over.set_value();
        ASSERT_TRUE(error);
        EXPECT_EQ(error->code, ErrorCode::peer_left) << error->what();
        EXPECT_EQ(error->peer, leaves);
        const std::string words = "rank " + std::to_string(leaves) + " has left the communicator";
        EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
      }
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
};
INSTANTIATE_TEST_SUITE_P(Communicator, Lanes, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

TEST_P(Lanes, AReceiveHearsThatItsPeerHasLeftTheCommunicator) {
  for (const int waits : {0, 1})
    for (const auto after : {0ms, 300ms})
      expect_peer_left(waits, after, [&](Communicator& part) {
        std::int32_t value = 0;
        part.receive(&value, 1, DType::int32, 1 - waits);
      });
}

TEST_P(Lanes, ALargeSendHearsThatItsPeerHasLeftTheCommunicator) {
  const std::vector<float> values(kLarge);
  for (const int waits : {0, 1})
    expect_peer_left(waits, 50ms,
                     [&](Communicator& part) { part.send(values.data(), values.size(), DType::float32, 1 - waits); });
}

TEST_P(Lanes, AGroupHearsThatAPeerHasLeftTheCommunicator) {
  for (const int waits : {0, 1})
    expect_peer_left(waits, 50ms, [&](Communicator& part) {
      std::int32_t sent = 1, got = 0;
      const GroupScope group;
      part.send(&sent, 1, DType::int32, 1 - waits);
      part.receive(&got, 1, DType::int32, 1 - waits);
    });
}

// A small send may return before the peer receives, or wait for it. In each case one of the two hears of it.
TEST_P(Lanes, ASmallSendToARankThatNeverLooksForItIsNotLostInSilence) {
  for (const int sends : {0, 1})
    for (const auto after : {0ms, 100ms}) {
      std::optional<Error> heard[2];
      const auto thrown = outcomes(3, with_transport(GetParam()), [&](Communicator& world) {
        Communicator part = world.split(0);
        std::int32_t value = 5;
        if (world.rank() == 1 - sends) std::this_thread::sleep_for(after);
        const auto error = error_of([&] {
          if (world.rank() == sends) part.send(&value, 1, DType::int32, 1 - sends);
          part.finalize();
        });
        if (world.rank() < 2) heard[world.rank()] = error;
        world.barrier();
      });
      for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
      EXPECT_TRUE(heard[0] || heard[1]);
      for (const auto& error : heard) {
        if (!error) continue;
        EXPECT_TRUE(error->code == ErrorCode::mismatch || error->code == ErrorCode::peer_left) << error->what();
      }
    }
}

// Rank 1 sends to rank 0, which looks for no message. In both orders of leaving, the one that leaves later hears of it.
// Over TCP such a send does not wait.
TEST(LanesOverTcp, AMessageThatNobodyLookedForIsFoundWhenTheRanksLeave) {
  for (const int first : {0, 1}) {
    std::promise<void> sent, left;
    const auto thrown = outcomes(3, with_transport("tcp"), [&](Communicator& world) {
      const int rank = world.rank();
      Communicator part = world.split(0);
      std::int32_t values[2] = {5, 6};
      if (rank == 1) {
        part.send(values, 1, DType::int32, 0);
        part.send(values, 2, DType::int32, 0);
        sent.set_value();
      }
      if (rank == 0) sent.get_future().wait_for(20s);
      if (rank < 2 && rank != first) left.get_future().wait_for(20s);
      const auto error = error_of([&] { part.finalize(); });
      if (rank == first) left.set_value();
      if (rank == 2) {
        EXPECT_FALSE(error) << error->what();
      } else {
        ASSERT_EQ(error.has_value(), rank != first) << "rank " << rank;
      }
      if (!error) return;
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
      EXPECT_EQ(error->rank, rank);
      EXPECT_EQ(error->peer, 1 - rank);
      for (const std::string words :
           {"2 calls, the last of them transfer #2 (int32 x 2) from rank 1 to rank 0", "rank 0 made no call"})
        EXPECT_NE(std::string(error->what()).find(words), std::string::npos) << error->what();
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }
}

// Many pairs, in which all is well, and ranks leave in any order: nobody hears anything.
TEST_P(Lanes, MessagesThatWereReceivedAreNoMismatch) {
  constexpr int kRanks = 4;
  const auto thrown = outcomes(kRanks, with_transport(GetParam()), [&](Communicator& world) {
    for (int round = 0; round < 20; ++round) {
      Communicator part = world.split(0, round % 2 == 0 ? world.rank() : -world.rank());
      std::int32_t sent = part.rank(), got[kRanks] = {};
      group_start();
      for (int peer = 0; peer < kRanks; ++peer)
        if (peer != part.rank() && (peer + part.rank()) % 3 == round % 3) {
          part.send(&sent, 1, DType::int32, peer);
          part.receive(&got[peer], 1, DType::int32, peer);
        }
      group_end();
      part.finalize();
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// A receive that outlives its communicator is no message that nobody looked for.
TEST_P(Lanes, AReceiveMayOutliveItsCommunicator) {
  std::promise<void> left;
  const auto thrown = outcomes(3, with_transport(GetParam()), [&](Communicator& world) {
    Communicator part = world.split(0);
    std::int32_t value = 7, got = 0;
    if (world.rank() == 0) {
      Work work = part.start_receive(&got, 1, DType::int32, 1);
      { const Communicator leaves = std::move(part); }
      left.set_value();
      work.wait();
      EXPECT_EQ(got, 7);
    } else if (world.rank() == 1) {
      left.get_future().wait_for(20s);
      std::this_thread::sleep_for(20ms);  // the farewell of rank 0 is at the hub
      part.send(&value, 1, DType::int32, 0);
      part.finalize();
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

}  // namespace
}  // namespace tutti::internal
