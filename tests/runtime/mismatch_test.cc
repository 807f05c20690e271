// Ranks that make different calls: in no case do all of them believe that all went well.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/any_call.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

constexpr int kLast = -1, kOwn = -2;  // roots that depend on the rank

struct Kind {
  const char* name;
  void (*call)(Communicator&, std::vector<std::int64_t>&);
  const char* family = nullptr;  // kinds that differ by the root alone have one
  int root = 0;

  // Ranks whose calls are equal make the same call.
  std::pair<std::string, int> called(std::size_t rank, std::size_t size) const {
    const int from = root == kOwn ? static_cast<int>(rank) : root == kLast ? static_cast<int>(size) - 1 : root;
    return {family == nullptr ? name : family, family == nullptr ? 0 : from};
  }
};

// All kinds of calls, and of each something that differs from the one before.
const std::vector<Kind> kKinds{
    {"barrier", [](Communicator& c, auto&) { c.barrier(); }},
    {"all_reduce", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::sum); }},
    {"all_reduce, count", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 7, DType::int64, Op::sum); }},
    {"all_reduce, type", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::uint64, Op::sum); }},
    {"all_reduce, operator",
     [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::max); }},
    {"all_reduce, order",
     [](Communicator& c, auto& v) {
       c.all_reduce(v.data(), v.data(), 8, DType::int64, Op::sum, {.order = Order::any});
     }},
    {"all_reduce, empty", [](Communicator& c, auto& v) { c.all_reduce(v.data(), v.data(), 0, DType::int64, Op::sum); }},
    {"reduce_scatter",
     [](Communicator& c, auto& v) { c.reduce_scatter(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"all_gather", [](Communicator& c, auto& v) { c.all_gather(v.data(), v.data() + 100, 8, DType::int64); }},
    {"broadcast of rank 0", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, 0); }, "broadcast"},
    {"broadcast of rank 1", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, 1); }, "broadcast",
     1},
    {"broadcast of the last", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, c.size() - 1); },
     "broadcast", kLast},
    {"broadcast of each rank's own", [](Communicator& c, auto& v) { c.broadcast(v.data(), 8, DType::int64, c.rank()); },
     "broadcast", kOwn},
    {"reduce to rank 0",
     [](Communicator& c, auto& v) { c.reduce(v.data(), v.data() + 100, 8, DType::int64, Op::sum, 0); }, "reduce"},
    {"reduce to each rank's own",
     [](Communicator& c, auto& v) { c.reduce(v.data(), v.data() + 100, 8, DType::int64, Op::sum, c.rank()); }, "reduce",
     kOwn},
    {"gather to rank 0", [](Communicator& c, auto& v) { c.gather(v.data(), v.data() + 100, 8, DType::int64, 0); },
     "gather"},
    {"gather to each rank's own",
     [](Communicator& c, auto& v) { c.gather(v.data(), v.data() + 100, 8, DType::int64, c.rank()); }, "gather", kOwn},
    {"scatter from rank 1", [](Communicator& c, auto& v) { c.scatter(v.data(), v.data() + 100, 8, DType::int64, 1); },
     "scatter", 1},
    {"scatter from each rank's own",
     [](Communicator& c, auto& v) { c.scatter(v.data(), v.data() + 100, 8, DType::int64, c.rank()); }, "scatter", kOwn},
    {"scan", [](Communicator& c, auto& v) { c.scan(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"exclusive_scan",
     [](Communicator& c, auto& v) { c.exclusive_scan(v.data(), v.data() + 100, 8, DType::int64, Op::sum); }},
    {"all_to_all", [](Communicator& c, auto& v) { c.all_to_all(v.data(), v.data() + 100, 8, DType::int64); }},
    {"all_to_all, in place", [](Communicator& c, auto& v) { c.all_to_all(v.data(), v.data(), 9, DType::int64); }},
    {"all_gather_v",
     [](Communicator& c, auto& v) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       c.all_gather_v(v.data(), v.data() + 100, {counts}, DType::int64);
     }},
    {"all_gather_v, other rows of the same length in all",
     [](Communicator& c, auto& v) {
       std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       ++counts.front(), --counts.back();
       c.all_gather_v(v.data(), v.data() + 100, {counts}, DType::int64);
     }},
    {"all_to_all_v",
     [](Communicator& c, auto& v) {
       const std::vector<std::size_t> counts(static_cast<std::size_t>(c.size()), 8);
       c.all_to_all_v(v.data(), {counts}, v.data() + 100, {counts}, DType::int64);
     }},
    {"broadcast, count", [](Communicator& c, auto& v) { c.broadcast(v.data(), 9, DType::int64, 0); }},
    {"no call", [](Communicator&, auto&) {}},
};

enum class Then { leave, barrier, again };

// Of each trial, on a communicator of its own: rank r makes kinds[of[r]]. Returns what went unnoticed.
struct Trial {
  const Kind* kinds[2];
  std::vector<int> of;  // by rank: 0 or 1
  Then then;
};

bool differs(const Trial& trial) {
  const auto called = [&](std::size_t rank) { return trial.kinds[trial.of[rank]]->called(rank, trial.of.size()); };
  for (std::size_t rank = 1; rank < trial.of.size(); ++rank)
    if (called(rank) != called(0)) return true;
  return false;
}

void make(Communicator& communicator, const Trial& trial, std::vector<std::int64_t>& values) {
  const Kind& kind = *trial.kinds[trial.of[communicator.rank()]];
  for (int i = 0; i < (trial.then == Then::again ? 4 : 1); ++i) kind.call(communicator, values);
  if (trial.then == Then::barrier) communicator.barrier();
  communicator.finalize();
}

class Mismatch : public testing::TestWithParam<std::string> {
 protected:
  // On every rank of a job of n: makes all trials, one after the other. A trial goes unnoticed if no rank throws.
  void try_all(int n, const std::vector<Trial>& trials) {
    Settings settings;
    settings.transport = GetParam();
    settings.timeout = 20s;
    const auto thrown = outcomes(n, settings, [&](Communicator& world) {
      std::vector<std::int64_t> values(1000, 1);
      for (const Trial& trial : trials) {
        Communicator communicator = world.split(0);
        std::int32_t errors = 0;
        std::string said;
        const auto begin = std::chrono::steady_clock::now();
        try {
          make(communicator, trial, values);
        } catch (const Error& error) {
          errors = 1;
          said = error.what();
          EXPECT_NE(error.code, ErrorCode::timeout) << said;
        }
        EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s) << said;
        world.all_reduce(std::span(&errors, 1), Op::sum);
        ASSERT_EQ(errors > 0, differs(trial))
            << trial.kinds[0]->name << " and " << trial.kinds[1]->name << ", then " << static_cast<int>(trial.then)
            << ", rank 0 has " << trial.of[0] << ", rank 1 " << trial.of[1] << " of " << n << ": " << said;
      }
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
  }

  static std::vector<Trial> all_trials(int n) {
    std::vector<Trial> trials;
    for (const Kind& a : kKinds)
      for (const Kind& b : kKinds)
        for (int mask = 0; mask < (1 << n); ++mask)
          for (const Then then : {Then::leave, Then::barrier, Then::again}) {
            if (&a > &b || (&a == &b && mask != 0)) continue;
            Trial trial{{&a, &b}, {}, then};
            for (int rank = 0; rank < n; ++rank) trial.of.push_back(mask >> rank & 1);
            trials.push_back(trial);
          }
    return trials;
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, Mismatch, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

TEST_P(Mismatch, NeverSucceedsOnAllRanks) {
  for (const int n : {2, 3, 4}) {
    std::vector<Trial> trials = all_trials(n);
    std::shuffle(trials.begin(), trials.end(), std::mt19937(static_cast<unsigned>(n)));
    trials.resize(200);
    try_all(n, trials);
  }
}

#ifndef TUTTI_BRIEF
// Every one: minutes.
class AllMismatches : public Mismatch {};
INSTANTIATE_TEST_SUITE_P(Exhaustive, AllMismatches, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });
TEST_P(AllMismatches, NeverSucceedOnAllRanks) {
  // A rank has 32,000 channels of shared memory in the life of a job.
  constexpr std::size_t kTrialsOfAJob = 4000;
  for (const int n : {2, 3, 4}) {
    const std::vector<Trial> all = all_trials(n);
    for (std::size_t done = 0; done < all.size(); done += kTrialsOfAJob) {
      const std::span<const Trial> some = std::span(all).subspan(done);
      const auto of_job = some.first(std::min(some.size(), kTrialsOfAJob));
      try_all(n, {of_job.begin(), of_job.end()});
    }
  }
}
#endif

// A call that no message of a later one shows: all that tells of it is what the ranks say when they leave.
TEST_P(Mismatch, IsFoundWhenLeavingWhereTheLastCallsAreTheSame) {
  Settings settings;
  settings.transport = GetParam();
  const auto thrown = outcomes(4, settings, [&](Communicator& world) {
    std::int32_t value = world.rank();
    world.broadcast(std::span(&value, 1), world.rank() / 2 * 2);  // 0, 0, 2, 2
    world.broadcast(std::span(&value, 1), 1);
    world.finalize();
  });
  EXPECT_TRUE(std::any_of(thrown.begin(), thrown.end(), [](const auto& error) { return error.has_value(); }));
  for (const auto& error : thrown) {
    if (!error) continue;
    EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
  }
}

// A rank that needs nobody in its call leaves the job at once, and the others still wait for it: they hear what it has
// called, not only that it has left. Rank 0, which answers for those that have left, stays.
TEST_P(Mismatch, IsToldOfARankThatHasLeftTheJob) {
  Settings settings;
  settings.transport = GetParam();
  settings.timeout = 20s;
  constexpr int kRanks = 3;
  for (const Collective collective : {Collective::reduce, Collective::gather, Collective::scatter})
    for (const std::size_t count : {std::size_t{8}, std::size_t{200'000}})
      for (const std::vector<int>& roots : std::vector<std::vector<int>>{{1, 0, 0}, {0, 0, 1}, {2, 0, 1}, {1, 2, 0}}) {
        std::atomic<int> left = 0;
        std::atomic<int> mismatches = 0;
        const auto thrown = outcomes(kRanks + 1, settings, [&](Communicator& world) {
          Communicator part = world.split(world.rank() == 0 ? -1 : 0);
          if (world.rank() == 0) {
            for (int i = 0; i < 20'000 && left < kRanks; ++i) std::this_thread::sleep_for(1ms);
            return;
          }
          std::vector<float> in(kRanks * count), out(kRanks * count);
          try {
            const CallSpec spec{.collective = collective, .root = roots[part.rank()], .count = count};
            AnyCall::run(part, spec, in.data(), out.data());
            part.finalize();
          } catch (const Error& error) {
            EXPECT_EQ(error.code, ErrorCode::mismatch) << error.what();
            ++mismatches;
          }
          ++left;
        });
        for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
        EXPECT_GE(mismatches, 1);
      }
}

// Over TCP a root need not wait until its messages are taken. Each of its calls is of another kind than the one before.
TEST(MismatchOfRoots, IsFoundWhereRanksAreAHundredKindsOfCallsAhead) {
  Settings settings;
  settings.transport = "tcp";
  settings.timeout = 2s;
  const auto thrown = outcomes(4, settings, [](Communicator& world) {
    const int roots[] = {3, 2, 2, 3};
    std::vector<std::int64_t> values(100);
    for (std::size_t count = 1; count <= 100; ++count)
      world.broadcast(values.data(), count, DType::int64, roots[world.rank()]);
    std::this_thread::sleep_for(4s);  // those who are ahead: the others are to hear of it without their next call
    world.barrier();
  });
  for (const auto& error : thrown) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, ErrorCode::mismatch) << error->what();
  }
}

TEST_P(Mismatch, NamesBothCalls) {
  Settings settings;
  settings.transport = GetParam();
  const auto thrown = outcomes(2, settings, [&](Communicator& world) {
    Communicator communicator = world.split(0);
    std::int32_t value = 1;
    for (int i = 0; i < 3; ++i) communicator.broadcast(std::span(&value, 1), world.rank());
    world.barrier();
    communicator.finalize();
  });
  const auto is_mismatch = [](const auto& error) { return error && error->code == ErrorCode::mismatch; };
  EXPECT_TRUE(is_mismatch(thrown[0]) || is_mismatch(thrown[1]));
  for (const auto& error : thrown) {
    if (!is_mismatch(error)) continue;  // the other one may be gone by then
    const std::string said = error->what();
    EXPECT_NE(said.find("broadcast #"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 0"), std::string::npos) << said;
    EXPECT_NE(said.find("rank 1"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace tutti::internal
