// Send and receive over every transport that needs no second host.
#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <deque>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "brief.h"
#include "runtime/ranks.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class SendReceive : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, SendReceive, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

// Each pair its own values.
std::vector<std::byte> message(int from, int to, std::size_t count, DType dtype) {
  return random_input(100 * from + to, count, dtype);
}

TEST_P(SendReceive, EveryRankReachesEveryOther) {
  for (const int ranks : {2, 3, 5})
    Communicator::run_threads(
        ranks,
        [&](Communicator& world) {
          const int me = world.rank();
          for (const DType dtype : {DType::float32, DType::int8})
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{300'007}}) {
              std::vector<std::vector<std::byte>> out, in;
              std::vector<Work> works;
              for (int peer = 0; peer < ranks; ++peer) {
                out.push_back(message(me, peer, count, dtype));
                in.emplace_back(out.back().size());
              }
              for (int peer = 0; peer < ranks; ++peer) {
                if (peer == me) continue;
                works.push_back(world.start_send(out[peer].data(), count, dtype, peer));
                works.push_back(world.start_receive(in[peer].data(), count, dtype, peer));
              }
              for (Work& work : works) work.wait();
              for (int peer = 0; peer < ranks; ++peer) {
                if (peer == me) continue;
                ASSERT_EQ(in[peer], message(peer, me, count, dtype)) << to_string(dtype) << " x " << count;
              }
            }
        },
        GetParam());
}

TEST_P(SendReceive, MessagesOfAPairComeInOrder) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        constexpr int kMessages = 200;
        std::mt19937 random(7);
        std::vector<std::vector<std::int32_t>> messages(kMessages);
        for (int i = 0; i < kMessages; ++i)
          messages[i].assign(random() % 3 == 0 ? random() % 50'000 : random() % 20, i);
        std::vector<Work> works;
        for (int i = 0; i < kMessages; ++i) {
          std::vector<std::int32_t>& values = messages[i];
          const CallOptions options{.tag = i};
          if (world.rank() == 0) {
            works.push_back(world.start_send(values.data(), values.size(), DType::int32, 1, options));
          } else if (i % 2 == 0) {
            std::fill(values.begin(), values.end(), -1);
            world.receive(values.data(), values.size(), DType::int32, 0, options);
          } else {
            std::fill(values.begin(), values.end(), -1);
            works.push_back(world.start_receive(values.data(), values.size(), DType::int32, 0, options));
          }
        }
        for (Work& work : works) work.wait();
        for (int i = 0; i < kMessages; ++i)
          ASSERT_EQ(messages[i], std::vector<std::int32_t>(messages[i].size(), i)) << i;
      },
      GetParam());
}

// Short blocking ones among started ones and long ones, in a random order that both ranks have.
TEST_P(SendReceive, ShortMessagesKeepTheirOrderAmongOthers) {
  const int messages = kBrief ? 300 : 3000;
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        std::mt19937 kinds(3), own(static_cast<unsigned>(world.rank()));
        std::deque<std::pair<int, std::vector<std::int64_t>>> started;  // their addresses stay
        std::vector<Work> works;
        const auto finish = [&] {
          for (Work& work : works) work.wait();
          for (const auto& [number, values] : started)
            EXPECT_EQ(values, std::vector<std::int64_t>(values.size(), number));
          works.clear();
          started.clear();
        };
        std::size_t count = 1;
        for (int i = 0; i < messages; ++i) {
          if (kinds() % 20 == 0) count = kinds() % 10 == 0 ? 10'000 : 1 + kinds() % 250;
          std::vector<std::int64_t> values(count, world.rank() == 0 ? i : -1);
          const bool starts = own() % 4 == 0;
          if (starts) {
            std::vector<std::int64_t>& kept = started.emplace_back(i, std::move(values)).second;
            works.push_back(world.rank() == 0 ? world.start_send(kept.data(), count, DType::int64, 1)
                                              : world.start_receive(kept.data(), count, DType::int64, 0));
          } else if (world.rank() == 0) {
            world.send(values.data(), count, DType::int64, 1);
          } else {
            world.receive(values.data(), count, DType::int64, 0);
            ASSERT_EQ(values, std::vector<std::int64_t>(count, i)) << i;
          }
          if (own() % 50 == 0) finish();
        }
        finish();
      },
      GetParam());
}

// A ring, in which each rank starts its send before it receives; large, so that no transport takes it at once.
TEST_P(SendReceive, AStartedSendAndAReceiveExchangeLargeMessages) {
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        const std::size_t count = kBrief ? 100'000 : 3'000'000;
        const int next = (world.rank() + 1) % 3, previous = (world.rank() + 2) % 3;
        const Memory memory = world.allocate(2 * count * sizeof(std::int32_t));  // the second half is received to
        const auto both = memory.as<std::int32_t>();
        for (int round = 0; round < 3; ++round) {
          std::fill(both.begin(), both.end(), world.rank() + round);
          Work sent = world.start_send(both.data(), count, DType::int32, next);
          world.receive(both.data() + count, count, DType::int32, previous);
          sent.wait();
          ASSERT_EQ(both[count], previous + round);
          ASSERT_EQ(both.back(), previous + round);
          ASSERT_EQ(both[count - 1], world.rank() + round);
        }
      },
      GetParam());
}

TEST_P(SendReceive, NeitherWaitsForCollectivesNorTheyForIt) {
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        const int me = world.rank();
        std::int32_t one = 1, sum = 0, late = -1, value = 10 + me;
        Work receive;
        if (me == 0) receive = world.start_receive(&late, 1, DType::int32, 2);  // what is sent last of all
        for (int i = 0; i < 20; ++i) {
          EXPECT_EQ(late, -1);  // before this rank's part: rank 2 sends only behind the last of these calls
          world.all_reduce(&one, &sum, 1, DType::int32, Op::sum);
          ASSERT_EQ(sum, 3);
        }
        Work collective = world.start_all_reduce(&one, &sum, 1, DType::int32, Op::sum);  // rank 1 comes to it last
        if (me == 0) world.send(&value, 1, DType::int32, 1);
        if (me == 1) {
          std::int32_t from_first = 0;
          world.receive(&from_first, 1, DType::int32, 0);
          EXPECT_EQ(from_first, 10);
        }
        if (me == 2) world.send(&value, 1, DType::int32, 0);
        if (me == 0) {
          receive.wait();
          EXPECT_EQ(late, 12);
        }
        collective.wait();
        EXPECT_EQ(sum, 3);
      },
      GetParam());
}

TEST_P(SendReceive, WithinAPartRanksHaveTheNumbersOfThePart) {
  Communicator::run_threads(
      4,
      [&](Communicator& world) {
        Communicator part = world.split(world.rank() % 2, -world.rank());  // {2, 0} and {3, 1}
        std::int32_t mine = 100 + world.rank(), theirs = 0;
        if (part.rank() == 0) part.send(&mine, 1, DType::int32, 1);
        if (part.rank() == 1) {
          part.receive(&theirs, 1, DType::int32, 0);
          EXPECT_EQ(theirs, 102 + world.rank());
        }
      },
      GetParam());
}

Settings over(const std::string& transport) {
  Settings settings;
  settings.transport = transport;
  return settings;
}

// Over inproc there is nothing that joins by settings.
class SendReceiveFails : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, SendReceiveFails, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

// Equal short messages, so that the next one like them may go another way than the first (group_at_once.cc).
void exchange(Communicator& world, int from, int to, int messages, int tag = 3) {
  float data[10] = {};
  for (int i = 0; i < messages; ++i) {
    if (world.rank() == from) world.send(data, 10, DType::float32, to, {.tag = tag});
    if (world.rank() == to) world.receive(data, 10, DType::float32, from, {.tag = tag});
  }
}

void expect_a_mismatch_of_what_differs(const std::string& transport, int before) {
  struct Call {
    std::size_t count;
    DType dtype;
    int tag;
    std::string words;
  };
  const std::string number = "transfer #" + std::to_string(before + 1);
  const Call sent{10, DType::float32, 3, number + " (float32 x 10, tag 3)"};
  for (const Call& received : {Call{11, DType::float32, 3, "float32 x 11"}, Call{10, DType::int32, 3, "int32 x 10"},
                               Call{10, DType::float32, 0, number + " (float32 x 10) from rank 2 to rank 0"},
                               Call{500'000, DType::float32, 3, "float32 x 500000"}}) {
    const auto thrown = outcomes(3, over(transport), [&](Communicator& world) {
      std::vector<float> own(500'000);
      exchange(world, 2, 0, before);
      if (world.rank() == 0) world.receive(own.data(), received.count, received.dtype, 2, {.tag = received.tag});
      if (world.rank() == 2) world.send(own.data(), sent.count, sent.dtype, 0, {.tag = sent.tag});
      world.barrier();
    });
    for (const int rank : {0, 1, 2}) {
      ASSERT_TRUE(thrown[rank]) << rank;
      EXPECT_EQ(thrown[rank]->code, ErrorCode::mismatch) << thrown[rank]->what();
      const std::string text = thrown[rank]->what();
      EXPECT_NE(text.find(sent.words), std::string::npos) << text;
      EXPECT_NE(text.find(received.words), std::string::npos) << text;
    }
    EXPECT_EQ(thrown[0]->rank, 0);
  }
}

TEST_P(SendReceiveFails, WhatDiffersIsAMismatchOnBothSides) { expect_a_mismatch_of_what_differs(GetParam(), 0); }

TEST_P(SendReceiveFails, WhatDiffersAfterManyShortMessagesIsAMismatchOnBothSides) {
  expect_a_mismatch_of_what_differs(GetParam(), 1);
  expect_a_mismatch_of_what_differs(GetParam(), 100);
}

TEST_P(SendReceiveFails, AfterManyShortMessagesAReceiveTimesOut) {
  Settings settings = over(GetParam());
  settings.timeout = 400ms;
  const auto thrown = outcomes(2, settings, [&](Communicator& world) {
    world.set_timeout(20s);
    exchange(world, 0, 1, 100);
    if (world.rank() == 1) world.set_timeout(0ms);  // the job's
    float data[10];
    if (world.rank() == 1) world.receive(data, 10, DType::float32, 0, {.tag = 3});
    if (world.rank() == 0) world.barrier({.timeout = 20s});
  });
  ASSERT_TRUE(thrown[1]);
  EXPECT_EQ(thrown[1]->code, ErrorCode::timeout) << thrown[1]->what();
  EXPECT_NE(std::string(thrown[1]->what()).find("rank 0 has not entered transfer #101"), std::string::npos)
      << thrown[1]->what();
}

TEST_P(SendReceiveFails, AfterManyShortMessagesAnAbortEndsSendsAndReceives) {
  const auto thrown = outcomes(3, over(GetParam()), [&](Communicator& world) {
    exchange(world, 0, 1, 100);
    exchange(world, 1, 2, 100);
    world.barrier();
    if (world.rank() == 2) world.abort("for this test");
    if (world.rank() == 0) exchange(world, 0, 1, 1'000'000'000);  // nobody receives them
    if (world.rank() == 1) exchange(world, 2, 1, 1);
  });
  for (const int rank : {0, 1}) {
    ASSERT_TRUE(thrown[rank]);
    EXPECT_EQ(thrown[rank]->code, ErrorCode::aborted) << thrown[rank]->what();
  }
}

TEST_P(SendReceiveFails, AfterManyShortMessagesAPeerThatHasLeftIsNamed) {
  const auto thrown = outcomes(2, over(GetParam()), [&](Communicator& world) {
    exchange(world, 0, 1, 100);
    if (world.rank() == 1) exchange(world, 0, 1, 1);
  });
  ASSERT_TRUE(thrown[1]);
  EXPECT_EQ(thrown[1]->code, ErrorCode::peer_left) << thrown[1]->what();
  EXPECT_EQ(thrown[1]->peer, 0);
}

TEST_P(SendReceiveFails, AReceiveThatNobodySendsToTimesOutAndNamesTheRank) {
  Settings settings = over(GetParam());
  settings.timeout = 400ms;
  const auto thrown = outcomes(3, settings, [&](Communicator& world) {
    std::int32_t value = 0;
    world.set_timeout(20s);
    Communicator part = world.split(0, -world.rank());
    if (part.rank() != 2) return part.barrier({.timeout = 20s});
    part.set_timeout(0ms);  // the job's
    part.receive(&value, 1, DType::int32, 1);
  });
  ASSERT_TRUE(thrown[0]);
  EXPECT_EQ(thrown[0]->code, ErrorCode::timeout) << thrown[0]->what();
  EXPECT_EQ(thrown[0]->peer, 1);
  EXPECT_EQ(thrown[0]->rank, 2);
  EXPECT_NE(std::string(thrown[0]->what())
                .find("rank 1 has not entered transfer #1 (int32 x 1) from rank 1 to rank 2 (of the job: 0)"),
            std::string::npos)
      << thrown[0]->what();
  for (const int rank : {1, 2}) {
    ASSERT_TRUE(thrown[rank]);
    EXPECT_EQ(thrown[rank]->code, ErrorCode::timeout) << thrown[rank]->what();
  }
}

TEST_P(SendReceiveFails, APeerThatHasLeftIsNamed) {
  const auto thrown = outcomes(2, over(GetParam()), [&](Communicator& world) {
    std::int32_t value = 0;
    if (world.rank() == 1) world.receive(&value, 1, DType::int32, 0);
  });
  ASSERT_TRUE(thrown[1]);
  EXPECT_EQ(thrown[1]->code, ErrorCode::peer_left) << thrown[1]->what();
  EXPECT_EQ(thrown[1]->peer, 0);
}

TEST_P(SendReceiveFails, AnAbortEndsAReceiveAndAReceiveThatFailsEndsCollectives) {
  const auto thrown = outcomes(3, over(GetParam()), [&](Communicator& world) {
    std::int32_t value = 0;
    if (world.rank() == 0) world.abort("for this test");
    if (world.rank() == 1) world.receive(&value, 1, DType::int32, 2);
    if (world.rank() == 2) world.barrier();
  });
  for (const int rank : {1, 2}) {
    ASSERT_TRUE(thrown[rank]);
    EXPECT_EQ(thrown[rank]->code, ErrorCode::aborted) << thrown[rank]->what();
  }
}

TEST_P(SendReceiveFails, AWorkThatOutlivesItsCommunicatorHearsOfAnAbort) {
  std::promise<void> gone;
  const auto thrown = outcomes(2, over(GetParam()), [&](Communicator& world) {
    std::int32_t value = 0;
    Communicator part = world.split(0, world.rank());
    if (world.rank() == 1) {
      gone.get_future().wait_for(20s);
      part.abort("for this test");
      return;
    }
    Work work = part.start_receive(&value, 1, DType::int32, 1);
    { const Communicator leaves = std::move(part); }
    gone.set_value();
    try {
      work.wait();
      ADD_FAILURE() << "the call ended well";
    } catch (const Error& error) {
      EXPECT_EQ(error.code, ErrorCode::aborted) << error.what();
    }
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(SendReceiveFails, WrongArgumentsLeaveTheCommunicatorUsable) {
  const auto thrown = outcomes(2, over(GetParam()), [&](Communicator& world) {
    std::int32_t value = 5;
    const int other = 1 - world.rank();
    const auto code_of = [&](const std::function<void()>& call) {
      try {
        call();
      } catch (const Error& error) {
        return std::optional(error.code);
      }
      return std::optional<ErrorCode>();
    };
    EXPECT_EQ(code_of([&] { world.send(&value, 1, DType::int32, 2); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { world.receive(&value, 1, DType::int32, -1); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { world.send(&value, 1, DType::int32, world.rank()); }), ErrorCode::unsupported);
    EXPECT_EQ(code_of([&] { world.send(nullptr, 1, DType::int32, other); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { world.send(&value, 1, DType::int32, other, {.tag = 65536}); }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] { world.send(&value, 1, DType::int32, other, {.tag = -1}); }), ErrorCode::invalid_argument);
    if (world.rank() == 0) world.send(&value, 1, DType::int32, 1, {.tag = 65535});
    std::int32_t got = 0;
    if (world.rank() == 1) world.receive(&got, 1, DType::int32, 0, {.tag = 65535});
    EXPECT_EQ(got, world.rank() == 1 ? 5 : 0);
    world.finalize();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// The rank that leaves later hears that a message was sent which nobody received.
TEST_P(SendReceiveFails, AMessageThatNobodyReceivedIsFoundWhenTheRanksLeave) {
  int mismatches = 0;
  const auto thrown = outcomes(2, over(GetParam()), [&](Communicator& world) {
    std::int32_t value = 5;
    if (world.rank() == 0) {
      world.send(&value, 1, DType::int32, 1);
      world.send(&value, 1, DType::int32, 1);
    } else {
      world.receive(&value, 1, DType::int32, 0);
    }
    world.barrier();
    world.finalize();
  });
  for (const auto& error : thrown)
    if (error && error->code == ErrorCode::mismatch) ++mismatches;
  EXPECT_GE(mismatches, 1);
}

// Two threads of a rank: one receives what a peer sends, the other one makes collectives.
TEST_P(SendReceive, ThreadsOfOneRankMaySendReceiveAndReduceAtOnce) {
  const int rounds = kBrief ? 50 : 500;
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        const int other = 1 - world.rank();
        std::thread sender([&] {
          for (std::int32_t i = 0; i < rounds; ++i) world.send(&i, 1, DType::int32, other);
        });
        std::thread receiver([&] {
          for (std::int32_t i = 0; i < rounds; ++i) {
            std::int32_t got = -1;
            world.receive(&got, 1, DType::int32, other);
            EXPECT_EQ(got, i);
          }
        });
        for (std::int32_t i = 0; i < rounds; ++i) {
          std::int32_t sum = 0;
          world.all_reduce(&i, &sum, 1, DType::int32, Op::sum);
          EXPECT_EQ(sum, 2 * i);
        }
        sender.join();
        receiver.join();
      },
      GetParam());
}

}  // namespace
}  // namespace tutti::internal
