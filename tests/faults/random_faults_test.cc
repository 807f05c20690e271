// Ranks are killed and stopped at random. Every call ends in time, with the right result or with an error, and all
// survivors of the communicator tell the same story. More faults than usual, and other ones:
//
//     FAULTS=300 FAULT_SEED=5000 build/release/tests/faults/faults_test
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "brief.h"
#include "faults/fault_job.h"
#include "faults/fault_plan.h"
#include "faults/tally.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = FaultJob::Clock;

constexpr auto kJoinsWithin = 30s, kHangsAfter = 40s, kLeavesWithin = 10s;
constexpr auto kPause = 3 * kSilence / 10;
// Of a death all hear within moments, even on a machine that others use too. A rank that is silent has to be waited
// for; if several are, perhaps one after the other. A hub that looks late lets a silence begin anew.
constexpr auto kDeathIsHeardWithin = 5s;
constexpr auto kSilenceIsHeardWithin = 3 * kSilence + 3s;
constexpr auto kLate = 100ms;  // of a death; is only printed
// After that a call ends within moments. If a peer was stopped in the middle of it, over shared memory, in ten seconds:
// so communicator.h says.
constexpr auto kThrownWithin = 3s, kThrownWithinIfStopped = 13s;

// One job, and what is done to it.
class Course {
 public:
  Course(const FaultPlan& plan, const TwoHosts* hosts) : plan_(plan), job_(plan, hosts) {}

  void run(FaultTally& tally) {
    if (!job_.listen(Clock::now() + kJoinsWithin, [&] { return all_are_ready(); })) return blame("not all have joined");
    strike();
    if (has_paused_for_long()) return;
    const auto is_told = [](const FaultJob::Rank& rank) { return rank.story && rank.heard; };
    if (!job_.listen(Clock::now() + kHangsAfter, [&] { return job_.all(is_told, is_survivor()); }))
      return blame("a survivor hangs");
    compare();
    judge(tally);
    for (const auto& blow : plan_.blows)
      if (blow.fault == Fault::stop) job_.signal(blow.rank, SIGCONT);
    const auto is_stopped = [&](int rank) { return plan_.blow_at(rank) && plan_.blow_at(rank)->fault == Fault::stop; };
    if (!job_.listen(Clock::now() + kHangsAfter, [&] { return job_.all(is_told, is_stopped); }))
      return blame("a stopped rank that goes on hangs");
    for (int rank = 0; rank < plan_.ranks; ++rank)
      if (is_stopped(rank)) ++tally.of_the_stopped[job_.rank(rank).story->code];
    job_.close_input();
    const auto has_ended = [](const FaultJob::Rank& rank) { return rank.status.has_value(); };
    if (!job_.listen(Clock::now() + kLeavesWithin, [&] { return job_.all(has_ended, [](int) { return true; }); }))
      return blame("a rank does not end");
    for (int number = 0; number < plan_.ranks; ++number) {
      const FaultJob::Rank& rank = job_.rank(number);
      const auto* const blow = plan_.blow_at(number);
      const bool is_killed = blow && (blow->fault == Fault::kill || blow->fault == Fault::kill_forked);
      if (*rank.status != (is_killed ? SIGKILL : 0))
        blame("rank " + std::to_string(number) + " ended with status " + std::to_string(*rank.status));
      if (!rank.wrong.empty()) blame("rank " + std::to_string(number) + ": " + rank.wrong.front());
    }
  }

  // On a machine that others use too a pause may be longer than it was to be, and be noticed: then this proves nothing.
  bool has_paused_for_long() const { return pause_ > kSilence / 2; }

 private:
  bool all_are_ready() const {
    return job_.all([](const FaultJob::Rank& rank) { return rank.is_ready; }, [](int) { return true; });
  }
  std::function<bool(int)> is_survivor() const {
    return [this](int rank) { return plan_.is_of_group(rank) && !plan_.hits(rank); };
  }

  void strike() {
    struct Act {
      Clock::time_point when;
      int rank, signal;
      bool is_hit;
    };
    std::vector<Act> acts;
    const auto begin = Clock::now();
    for (const auto& blow : plan_.blows) {
      const bool kills = blow.fault == Fault::kill || blow.fault == Fault::kill_forked;
      acts.push_back({begin + blow.at, blow.rank, kills ? SIGKILL : SIGSTOP, blow.fault != Fault::pause});
      if (blow.fault == Fault::pause) acts.push_back({begin + blow.at + kPause, blow.rank, SIGCONT, false});
    }
    std::ranges::stable_sort(acts, {}, &Act::when);
    bool is_early = false;
    Clock::time_point paused;
    for (const Act& act : acts) {
      job_.listen(act.when);
      if (act.is_hit && !first_hit_) {
        for (int rank = 0; rank < plan_.ranks; ++rank)
          is_early = is_early || job_.rank(rank).heard || job_.rank(rank).story;
        first_hit_ = Clock::now();
      }
      if (act.signal == SIGSTOP && !act.is_hit) paused = Clock::now();
      job_.signal(act.rank, act.signal);
      if (act.signal == SIGCONT) pause_ = Clock::now() - paused;
    }
    if (is_early && !has_paused_for_long()) blame("an error before there was a fault");
  }

  void compare() {
    std::optional<FaultJob::Story> first;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (!is_survivor()(rank)) continue;
      const auto& story = *job_.rank(rank).story;
      if (!first) first = story;
      if (!is_same(story, *first)) return blame("the stories differ");
    }
  }

  void judge(FaultTally& tally) {
    Clock::time_point heard, thrown;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (!is_survivor()(rank)) continue;
      heard = std::max(heard, *job_.rank(rank).heard);
      thrown = std::max(thrown, job_.rank(rank).story->when);
      ++tally.stories[job_.rank(rank).story->code];
    }
    const bool is_silent = plan_.is_heard_by_silence_only();
    const bool pauses = std::ranges::count(plan_.blows, Fault::pause, &FaultPlan::Blow::fault) > 0;
    (is_silent ? tally.silences : pauses ? tally.with_pauses : tally.deaths).push_back(seconds(heard - *first_hit_));
    tally.thrown.push_back(seconds(thrown - heard));
    const auto stops = std::ranges::count(plan_.blows, Fault::stop, &FaultPlan::Blow::fault);
    const auto hidden = std::ranges::count(plan_.blows, Fault::kill_forked, &FaultPlan::Blow::fault);
    const Clock::duration limit = !is_silent           ? Clock::duration(kDeathIsHeardWithin)
                                  : stops + hidden > 1 ? 2 * kSilenceIsHeardWithin
                                                       : kSilenceIsHeardWithin;
    if (heard - *first_hit_ > limit) blame("heard after " + std::to_string(seconds(heard - *first_hit_)) + " s");
    if (thrown - heard > (stops > 0 ? kThrownWithinIfStopped : kThrownWithin))
      blame("thrown " + std::to_string(seconds(thrown - heard)) + " s after it was heard");
    if (!is_silent && !pauses && heard - *first_hit_ > kLate) note("late");
  }

  void note(const std::string& what) const {
    std::printf("%s: %s%s\n", what.c_str(), plan_.text().c_str(), stories().c_str());
  }

  std::string stories() const {
    std::string all;
    for (int number = 0; number < plan_.ranks; ++number) {
      const FaultJob::Rank& rank = job_.rank(number);
      all += "\n  rank " + std::to_string(number) + ": ";
      if (first_hit_ && rank.heard) all += std::to_string(seconds(*rank.heard - *first_hit_)) + " s, ";
      if (first_hit_ && rank.story) all += std::to_string(seconds(rank.story->when - *first_hit_)) + " s: ";
      all += rank.story ? rank.story->whole() : rank.heard ? "has heard, its call goes on" : "nothing";
      if (rank.status) all += " (ended, status " + std::to_string(*rank.status) + ")";
    }
    return all;
  }

  void blame(const std::string& what) const { ADD_FAILURE() << what << ": " << plan_.text() << stories(); }

  const FaultPlan& plan_;
  FaultJob job_;
  std::optional<Clock::time_point> first_hit_;
  Clock::duration pause_{};
};

class RandomFaults : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Wire, RandomFaults, testing::Values("shm", "tcp", "hosts"),
                         [](const auto& it) { return it.param; });

TEST_P(RandomFaults, EverySurvivorTellsTheSameStoryInTime) {
  std::optional<TwoHosts> hosts;
  if (GetParam() == "hosts" && !TwoHosts::can_be_made()) GTEST_SKIP() << "no network namespaces";
  if (GetParam() == "hosts") hosts.emplace();
  const int faults = number_from("FAULTS", kBrief ? 4 : 14);
  const int first = number_from("FAULT_SEED", 1);
  std::printf("seeds %d to %d\n", first, first + faults - 1);
  FaultTally tally;
  for (int seed = first; seed < first + faults; ++seed) {
    const FaultPlan plan = FaultPlan::draw(static_cast<unsigned>(seed), GetParam());
    bool is_seen = false;
    for (int tries = 0; tries < 5 && !is_seen; ++tries) {
      Course course(plan, hosts ? &*hosts : nullptr);
      course.run(tally);
      is_seen = !course.has_paused_for_long();
    }
    EXPECT_TRUE(is_seen) << "seed " << seed << ": the pause was too long each time";
  }
  tally.print();
}

}  // namespace
}  // namespace tutti::internal
