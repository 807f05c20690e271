// Groups of calls.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <future>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "brief.h"
#include "runtime/ranks.h"
#include "tutti/communicator.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

class CallGroups : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Communicator, CallGroups, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

std::optional<ErrorCode> code_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code;
  }
  return std::nullopt;
}

// All ranks send first and receive then, large messages too, to themselves as well: without a group that would hang.
TEST_P(CallGroups, SendsAndReceivesInAnyOrderDoNotDeadlock) {
  for (const std::size_t count :
       {std::size_t{0}, std::size_t{1}, std::size_t{500}, std::size_t{kBrief ? 30'000 : 700'001}})
    Communicator::run_threads(
        4,
        [&](Communicator& world) {
          const int me = world.rank();
          std::vector<std::vector<std::int32_t>> in(4, std::vector<std::int32_t>(count, -1)), out;
          for (int peer = 0; peer < 4; ++peer) out.emplace_back(count, 10 * me + peer);
          {
            const GroupScope group;
            for (int peer = 0; peer < 4; ++peer) world.send(out[peer].data(), count, DType::int32, peer, {.tag = peer});
            for (int peer = 3; peer >= 0; --peer)
              world.receive(in[peer].data(), count, DType::int32, peer, {.tag = me});
          }
          for (int peer = 0; peer < 4; ++peer)
            ASSERT_EQ(in[peer], std::vector<std::int32_t>(count, 10 * peer + me)) << peer;
        },
        GetParam());
}

// With the same bits as one by one, whatever their sizes are and what stands between them.
TEST_P(CallGroups, AllReducesOfAGroupHaveTheBitsThatTheyHaveAlone) {
  for (const int ranks : {1, 2, 3, 5})
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::int64})
      for (const Op op : {Op::sum, Op::avg, Op::max})
        Communicator::run_threads(
            ranks,
            [&](Communicator& world) {
              std::mt19937 random(3);
              struct Call {
                std::vector<std::byte> in, out, alone;
                std::size_t count;
              };
              std::vector<Call> calls;
              for (int i = 0; i < 60; ++i) {
                const std::size_t count = i % 7 == 0 ? random() % 5000 : random() % 40;
                auto in = random_input(world.rank() + 10 * i, count, dtype);
                calls.push_back({in, std::vector<std::byte>(in.size()), std::vector<std::byte>(in.size()), count});
              }
              for (Call& call : calls) world.all_reduce(call.in.data(), call.alone.data(), call.count, dtype, op);
              std::int32_t one = 1, before = 0, after = 0;
              std::vector<Work> works;
              group_start();
              group_start();
              for (std::size_t i = 0; i < calls.size(); ++i) {
                Call& call = calls[i];
                if (i == 20) world.all_reduce(&one, &before, 1, DType::int32, Op::sum);  // of another type
                if (i == 40) world.barrier();
                if (i % 3 == 1) call.out = call.in;
                std::byte* const in = i % 3 == 1 ? call.out.data() : call.in.data();
                if (i % 5 == 2) {
                  works.push_back(world.start_all_reduce(in, call.out.data(), call.count, dtype, op));
                } else {
                  world.all_reduce(in, call.out.data(), call.count, dtype, op);
                }
              }
              world.all_reduce(&one, &after, 1, DType::int32, Op::sum);
              group_end();
              EXPECT_EQ(before, 0);
              group_end();
              EXPECT_EQ(before, ranks);
              EXPECT_EQ(after, ranks);
              for (Work& work : works) work.wait();
              for (const Call& call : calls) ASSERT_EQ(call.out, call.alone) << call.count;
            },
            GetParam());
}

TEST_P(CallGroups, StartedCallsOfAGroupNeedNobodyWhoWaitsForTheRest) {
  Communicator::run_threads(
      3,
      [&](Communicator& world) {
        std::vector<std::int32_t> in(20, world.rank() + 1), out(20);
        std::vector<Work> works;
        {
          const GroupScope group;
          for (std::size_t i = 0; i < in.size(); ++i) {
            works.push_back(world.start_all_reduce(&in[i], &out[i], 1, DType::int32, Op::sum));
            EXPECT_EQ(code_of([&] { works.back().test(); }), ErrorCode::invalid_argument);
            EXPECT_EQ(code_of([&] { works.back().wait(); }), ErrorCode::invalid_argument);
          }
        }
        while (!works.back().test()) continue;
        EXPECT_EQ(out, std::vector<std::int32_t>(20, 6));
        works.clear();
      },
      GetParam());
}

TEST_P(CallGroups, SeveralCommunicatorsInOneGroup) {
  Communicator::run_threads(
      4,
      [&](Communicator& world) {
        Communicator halves = world.split(world.rank() % 2, world.rank());
        Communicator back = world.split(0, -world.rank());
        std::vector<std::int32_t> in(30, 1), a(30), b(30), c(30);
        {
          const GroupScope group;
          for (std::size_t i = 0; i < in.size(); ++i) {
            // Each rank in an order of its own.
            if (world.rank() < 2) world.all_reduce(&in[i], &a[i], 1, DType::int32, Op::sum);
            halves.all_reduce(&in[i], &b[i], 1, DType::int32, Op::sum);
            if (world.rank() >= 2) world.all_reduce(&in[i], &a[i], 1, DType::int32, Op::sum);
            back.broadcast(&in[i], &c[i], 1, DType::int32, 3);
          }
        }
        EXPECT_EQ(a, std::vector<std::int32_t>(30, 4));
        EXPECT_EQ(b, std::vector<std::int32_t>(30, 2));
        EXPECT_EQ(c, in);
      },
      GetParam());
}

class CallGroupsFail : public testing::TestWithParam<std::string> {
 protected:
  std::vector<std::optional<Error>> outcomes_of(int ranks, const std::function<void(Communicator&)>& body) {
    Settings settings;
    settings.transport = GetParam();
    return outcomes(ranks, settings, body);
  }
};
INSTANTIATE_TEST_SUITE_P(Communicator, CallGroupsFail, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });

// The ranks' totals are the same, but not the calls.
TEST_P(CallGroupsFail, GroupsThatDifferAreAMismatch) {
  for (const bool all_group : {true, false}) {
    const auto thrown = outcomes_of(2, [&](Communicator& world) {
      std::vector<float> values(8);
      const std::vector<std::size_t> counts =
          world.rank() == 0 ? std::vector<std::size_t>{3, 5} : std::vector<std::size_t>{5, 3};
      if (all_group || world.rank() == 0) group_start();
      std::size_t at = 0;
      for (const std::size_t count : counts) {
        const std::size_t size = all_group ? count : 4;
        world.all_reduce(&values[at], &values[at], size, DType::float32, Op::sum);
        at += size;
      }
      if (all_group || world.rank() == 0) group_end();
      world.finalize();
    });
    for (const auto& error : thrown) {
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
    }
    EXPECT_NE(std::string(thrown[0]->what()).find("several calls of one group"), std::string::npos)
        << thrown[0]->what();
  }
}

TEST_P(CallGroupsFail, AWrongArgumentMakesNoCallOfTheGroup) {
  const auto thrown = outcomes_of(2, [&](Communicator& world) {
    std::vector<std::int32_t> in(10, 1), out(10, -1);
    const auto wrong = [&](const std::function<void()>& call) {
      Work started;
      group_start();
      world.all_reduce(&in[0], &out[0], 1, DType::int32, Op::sum);
      world.all_reduce(&in[1], &out[1], 1, DType::int32, Op::sum);
      started = world.start_all_reduce(&in[2], &out[2], 1, DType::int32, Op::sum);
      call();
      EXPECT_EQ(code_of([&] { group_end(); }), ErrorCode::invalid_argument);
      EXPECT_EQ(code_of([&] { started.wait(); }), ErrorCode::invalid_argument);
      EXPECT_EQ(out, std::vector<std::int32_t>(10, -1));
    };
    wrong([&] { world.all_reduce(nullptr, &out[3], 1, DType::int32, Op::sum); });
    wrong([&] { world.all_reduce(&in[3], reinterpret_cast<char*>(&out[3]) + 1, 1, DType::int32, Op::sum); });
    wrong([&] { world.all_reduce(&in[3], &in[4], 5, DType::int32, Op::sum); });
    wrong([&] { world.all_reduce(&in[3], &out[3], 1, static_cast<DType>(99), Op::sum); });
    wrong([&] { world.broadcast(&in[3], 1, DType::int32, 2); });
    wrong([&] { world.send(&in[3], 1, DType::int32, world.rank()); });
    wrong([&] { world.receive(&in[3], 1, DType::int32, world.rank()); });
    EXPECT_EQ(code_of([&] { group_end(); }), ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                const GroupScope group;
                world.split(0, 0);
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                const GroupScope group;
                world.allocate(100);
              }),
              ErrorCode::invalid_argument);
    EXPECT_EQ(code_of([&] {
                const GroupScope group;
                world.send(&in[0], 1, DType::int32, world.rank(), {.tag = 1});
                world.receive(&out[0], 1, DType::int32, world.rank(), {.tag = 2});
              }),
              ErrorCode::mismatch);
    world.all_reduce(in.data(), out.data(), in.size(), DType::int32, Op::sum);
    EXPECT_EQ(out, std::vector<std::int32_t>(10, 2));
    world.finalize();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(CallGroupsFail, AnExceptionThatEndsTheBlockMakesNoCall) {
  const auto thrown = outcomes_of(2, [&](Communicator& world) {
    std::int32_t in = 1, out = -1;
    Work started;
    try {
      const GroupScope outer;
      const GroupScope group;
      world.all_reduce(&in, &out, 1, DType::int32, Op::sum);
      started = world.start_all_reduce(&in, &out, 1, DType::int32, Op::sum);
      throw std::runtime_error("the caller's own");
    } catch (const std::runtime_error&) {
    }
    EXPECT_EQ(code_of([&] { started.wait(); }), ErrorCode::aborted);
    EXPECT_EQ(out, -1);
    world.all_reduce(&in, &out, 1, DType::int32, Op::sum);  // alone: no group is open
    EXPECT_EQ(out, 2);
    world.finalize();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(CallGroupsFail, AFailureReachesEveryCallOfTheGroup) {
  const auto thrown = outcomes_of(3, [&](Communicator& world) {
    if (world.rank() == 2) return world.abort("for this test");
    std::vector<std::int32_t> in(10, 1), out(10, -1);
    std::vector<Work> works;
    group_start();
    for (std::size_t i = 0; i < in.size(); ++i) {
      works.push_back(world.start_all_reduce(&in[i], &out[i], 1, DType::int32, Op::sum));
      world.receive(&out[i], 1, DType::int32, 2);
    }
    EXPECT_EQ(code_of([&] { group_end(); }), ErrorCode::aborted);
    for (Work& work : works) EXPECT_EQ(code_of([&] { work.wait(); }), ErrorCode::aborted);
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// What has no Work any more is waited for by group_end().
TEST_P(CallGroups, WorksMayGoBeforeTheirGroupEnds) {
  Communicator::run_threads(
      2,
      [&](Communicator& world) {
        const std::size_t count = kBrief ? 50'000 : 500'000;
        const int other = 1 - world.rank();
        std::vector<std::int32_t> out(count, world.rank()), in(count, -1), self(count, -1), sums(20, 1);
        {
          const GroupScope group;
          world.start_send(out.data(), count, DType::int32, other);
          world.start_receive(in.data(), count, DType::int32, other);
          world.start_send(out.data(), count, DType::int32, world.rank());
          world.start_receive(self.data(), count, DType::int32, world.rank());
          for (std::int32_t& sum : sums) world.start_all_reduce(&sum, &sum, 1, DType::int32, Op::sum);
        }
        EXPECT_EQ(in, std::vector<std::int32_t>(count, other));
        EXPECT_EQ(self, out);
        EXPECT_EQ(sums, std::vector<std::int32_t>(20, 2));
      },
      GetParam());
}

TEST_P(CallGroupsFail, AFailedCommunicatorHoldsUpNoOtherOfTheGroup) {
  const auto thrown = outcomes_of(2, [&](Communicator& world) {
    Communicator failed = world.split(0, 0);
    if (world.rank() == 0) failed.abort("for this test");
    while (!failed.failure()) std::this_thread::sleep_for(1ms);
    std::int32_t in = 1, lost = -1, kept = -1, started = -1;
    Work work;
    group_start();
    failed.all_reduce(&in, &lost, 1, DType::int32, Op::sum);
    world.all_reduce(&in, &kept, 1, DType::int32, Op::sum);
    work = world.start_broadcast(&in, &started, 1, DType::int32, 0);
    EXPECT_EQ(code_of([&] { group_end(); }), ErrorCode::aborted);
    work.wait();
    EXPECT_EQ(lost, -1);
    EXPECT_EQ(kept, 2);
    EXPECT_EQ(started, 1);
    world.finalize();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

TEST_P(CallGroupsFail, AnExceptionOfAnInnerBlockGivesUpTheOuterGroupToo) {
  const auto thrown = outcomes_of(2, [&](Communicator& world) {
    std::int32_t value = 1, sum = -1;
    EXPECT_EQ(code_of([&] {
                const GroupScope outer;
                try {
                  const GroupScope inner;
                  world.all_reduce(&value, &sum, 1, DType::int32, Op::sum);
                  throw std::runtime_error("the caller's own");
                } catch (const std::runtime_error&) {
                }
                world.send(&value, 1, DType::int32, 1 - world.rank());
                world.receive(&sum, 1, DType::int32, 1 - world.rank());
              }),
              ErrorCode::aborted);
    EXPECT_EQ(sum, -1);
    world.all_reduce(&value, &sum, 1, DType::int32, Op::sum);
    EXPECT_EQ(sum, 2);
    world.finalize();
  });
  for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
}

// As programs do that have several devices a process. The ranks join on threads of their own.
TEST_P(CallGroupsFail, OneThreadDrivesSeveralRanks) {
  constexpr int kRanks = 3;
  Settings settings;
  settings.transport = GetParam();
  settings.size = kRanks;
  const auto store = make_memory_store();
  std::vector<std::future<Communicator>> joining;
  for (int rank = 0; rank < kRanks; ++rank)
    joining.push_back(std::async(std::launch::async, [&, rank] {
      Settings own = settings;
      own.rank = rank;
      return Communicator::join(own, *store);
    }));
  std::vector<Communicator> ranks;
  for (auto& each : joining) ranks.push_back(each.get());
  {  // The blocking call of one rank waits for the started ones of the others.
    std::vector<std::vector<float>> values(kRanks, std::vector<float>(300'000, 1));
    std::vector<Work> works;
    group_start();
    ranks[0].all_reduce(std::span<float>(values[0]), Op::sum);
    for (int rank = 1; rank < kRanks; ++rank)
      works.push_back(ranks[rank].start_all_reduce(values[rank].data(), values[rank].data(), values[rank].size(),
                                                   DType::float32, Op::sum));
    group_end();
    EXPECT_EQ(values[0], std::vector<float>(300'000, kRanks));
    while (!std::ranges::all_of(works, [](Work& work) { return work.test(); })) continue;
  }
  for (const std::size_t count : {std::size_t{1}, std::size_t{100'000}}) {
    std::vector<std::vector<float>> in(kRanks, std::vector<float>(count, 1)), out(kRanks, std::vector<float>(count));
    group_start();
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks[rank].all_reduce(in[rank].data(), out[rank].data(), count, DType::float32, Op::sum);
      ranks[rank].send(in[rank].data(), count, DType::float32, (rank + 1) % kRanks);
      ranks[rank].all_reduce(in[rank].data(), in[rank].data(), 0, DType::float32, Op::sum);
    }
    std::vector<std::vector<float>> received(kRanks, std::vector<float>(count));
    for (int rank = 0; rank < kRanks; ++rank)
      ranks[rank].receive(received[rank].data(), count, DType::float32, (rank + 2) % kRanks);
    group_end();
    for (int rank = 0; rank < kRanks; ++rank) {
      ASSERT_EQ(out[rank], std::vector<float>(count, kRanks));
      ASSERT_EQ(received[rank], in[rank]);
    }
  }
}

// Sends, receives, collectives and groups of them in an order that all ranks draw alike.
void expect_patterns_right(const std::string& transport, unsigned seed, int patterns) {
  constexpr int kRanks = 4;
  Communicator::run_threads(
      kRanks,
      [&](Communicator& world) {
        const int me = world.rank();
        Communicator other = world.split(0, (me + 2) % kRanks);
        std::mt19937 random(seed);
        for (int pattern = 0; pattern < patterns; ++pattern) {
          struct Expected {
            std::unique_ptr<std::vector<std::int32_t>> values;
            std::int32_t value;
          };
          std::vector<Expected> expected;
          std::vector<std::unique_ptr<std::vector<std::int32_t>>> inputs;
          const auto input = [&](std::size_t count, std::int32_t value) {
            inputs.push_back(std::make_unique<std::vector<std::int32_t>>(count, value));
            return inputs.back()->data();
          };
          const auto output = [&](std::size_t count, std::int32_t value) {
            expected.push_back({std::make_unique<std::vector<std::int32_t>>(count, -1), value});
            return expected.back().values->data();
          };
          std::vector<Work> works;
          const bool grouped = random() % 3 != 0;
          const int calls = 1 + static_cast<int>(random() % 12);
          if (grouped) group_start();
          for (int i = 0; i < calls; ++i) {
            const unsigned kind = random() % 6, from = random() % kRanks, to = random() % kRanks, starts = random() % 2;
            const std::size_t count = random() % 10 == 0 ? random() % 60'000 : random() % 30;
            const auto value = static_cast<std::int32_t>(random() % 1000);
            Communicator& on = random() % 2 == 0 ? world : other;
            const auto own = static_cast<unsigned>(on.rank());
            const CallOptions tagged{.tag = value};
            // Outside a group a rank that sends and blocks may be waited for by one that it waits for: it starts.
            const bool must_start = !grouped || starts != 0;
            if (kind < 4) {
              if (from == to && !grouped) continue;
              if (own == from) {
                const auto* data = input(count, value);
                if (must_start) {
                  works.push_back(on.start_send(data, count, DType::int32, static_cast<int>(to), tagged));
                } else {
                  on.send(data, count, DType::int32, static_cast<int>(to), tagged);
                }
              }
              if (own == to) {
                auto* data = output(count, value);
                if (must_start) {
                  works.push_back(on.start_receive(data, count, DType::int32, static_cast<int>(from), tagged));
                } else {
                  on.receive(data, count, DType::int32, static_cast<int>(from), tagged);
                }
              }
            } else {
              const auto* data = input(count, value);
              auto* to_data = output(count, kRanks * value);
              if (must_start) {
                works.push_back(on.start_all_reduce(data, to_data, count, DType::int32, Op::sum));
              } else {
                on.all_reduce(data, to_data, count, DType::int32, Op::sum);
              }
            }
          }
          if (grouped) group_end();
          for (Work& work : works) work.wait();
          for (const Expected& each : expected)
            ASSERT_EQ(*each.values, std::vector<std::int32_t>(each.values->size(), each.value)) << pattern;
        }
      },
      transport);
}

TEST_P(CallGroups, RandomPatternsGiveWhatTheySay) { expect_patterns_right(GetParam(), 11, kBrief ? 30 : 600); }

#ifndef TUTTI_BRIEF
// Ten thousand of them, all different.
class ExhaustivePatterns : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(ExhaustiveOf, ExhaustivePatterns, testing::ValuesIn(kTransports),
                         [](const auto& it) { return it.param; });

TEST_P(ExhaustivePatterns, GiveWhatTheySay) {
  const unsigned seed = GetParam() == "inproc" ? 21 : GetParam() == "shm" ? 22 : 23;
  expect_patterns_right(GetParam(), seed, 3'400);
}
#endif

}  // namespace
}  // namespace tutti::internal
