// All pairs of calls that differ: every rank that has not left hears the same mismatch, and no two ranks that made
// different calls both believe that all went well.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "brief.h"
#include "runtime/call_kinds.h"
#include "runtime/ranks.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kHearsWithin = 20s;  // usually milliseconds
constexpr std::size_t kJobs = kBrief ? 30 : 60;

// What the ranks do with the two kinds of calls, a and b.
enum class Form {
  alone,        // a | b, and they leave
  barrier,      // a, barrier | b, barrier
  again,        // a, a, a, a | b, b, b, b
  amid,         // barrier, a, all_reduce, barrier | barrier, b, all_reduce, barrier
  swapped,      // a, b | b, a
  more,         // a, barrier | a, b, barrier
  stays,        // as alone; nobody leaves before the calls of all are over
  stays_calls,  // as barrier; nobody makes the barrier before the other calls of all are over
};
constexpr Form kForms[] = {Form::alone,   Form::barrier, Form::again, Form::amid,
                           Form::swapped, Form::more,    Form::stays, Form::stays_calls};

const CallKind& kind_of(const std::string& name) {
  return *std::ranges::find_if(kCallKinds, [&](const CallKind& kind) { return kind.name == name; });
}
bool is_call(const CallKind* kind) { return kind != &kCallKinds.back(); }

struct Trial {
  const CallKind* kinds[2];
  Form form;
  std::vector<int> of;  // by rank: 0 or 1

  int size() const { return static_cast<int>(of.size()); }
  bool stays() const { return form == Form::stays || form == Form::stays_calls; }

  std::vector<const CallKind*> calls_of(int rank) const {
    const CallKind *a = kinds[0], *b = kinds[1], *mine = kinds[of[rank]];
    static const CallKind *const barrier = &kind_of("barrier"), *const all_reduce = &kind_of("all_reduce");
    std::vector<const CallKind*> calls;
    switch (form) {
      case Form::alone:
      case Form::stays: calls = {mine}; break;
      case Form::barrier:
      case Form::stays_calls: calls = {mine, barrier}; break;
      case Form::again: calls = {mine, mine, mine, mine}; break;
      case Form::amid: calls = {barrier, mine, all_reduce, barrier}; break;
      case Form::swapped: calls = of[rank] == 0 ? std::vector{a, b} : std::vector{b, a}; break;
      case Form::more: calls = of[rank] == 0 ? std::vector{a, barrier} : std::vector{a, b, barrier}; break;
    }
    std::erase_if(calls, [](const CallKind* kind) { return !is_call(kind); });
    return calls;
  }
  bool differ(int one, int other) const {
    const auto called = [&](int rank) {
      std::vector<std::pair<std::string, int>> calls;
      for (const CallKind* kind : calls_of(rank)) calls.push_back(kind->called(rank, size()));
      return calls;
    };
    return called(one) != called(other);
  }
  bool differ() const {
    for (int rank = 1; rank < size(); ++rank)
      if (differ(rank, 0)) return true;
    return false;
  }
  // Else some would wait for a call that a rank makes never, and which does not leave: nobody can know.
  bool is_sound() const { return !stays() || (is_call(kinds[0]) && is_call(kinds[1])); }
  std::string text() const {
    std::string text = std::string(kinds[0]->name) + " | " + kinds[1]->name + ", form " +
                       std::to_string(static_cast<int>(form)) + ", by rank";
    for (const int one : of) text += " " + std::to_string(one);
    return text;
  }
};

// How a trial ended on a rank.
struct End {
  std::optional<Error> error;  // else it has left, and believes that all went well
  Clock::time_point began, left_from, over;
};

// "…: rank 0 broadcast #4 (…), rank 2 barrier #4 (…)"; or two lengths of one message, in the same call.
bool names_two_calls_of_a_number(const std::string& reason) {
  if (reason.find(" has a message of ") != std::string::npos) return true;
  std::vector<std::string> numbers;
  for (std::size_t at = reason.find('#'); at != std::string::npos; at = reason.find('#', at + 1))
    numbers.push_back(reason.substr(at, reason.find_first_not_of("0123456789", at + 1) - at));
  return numbers.size() == 2 && numbers[0] == numbers[1];
}

// What the ranks of one trial know of each other, beside what the library tells them.
class Meeting {
 public:
  explicit Meeting(int ranks) : ends_(ranks) {}
  void calls_are_over() {
    const std::lock_guard lock(mutex_);
    ++over_;
    news_.notify_all();
  }
  // False: they are not.
  bool wait_until_all_are_over() {
    std::unique_lock lock(mutex_);
    return news_.wait_for(lock, kHearsWithin, [&] { return over_ == ends_.size(); });
  }
  void ended(int rank, const End& end) {
    const std::lock_guard lock(mutex_);
    ends_[rank] = end;
  }
  std::vector<End> ends() const {
    const std::lock_guard lock(mutex_);
    return ends_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable news_;
  std::size_t over_ = 0;
  std::vector<End> ends_;
};

End make(Communicator& communicator, const Trial& trial, Meeting& meeting, std::vector<std::int64_t>& values) {
  std::vector<const CallKind*> calls = trial.calls_of(communicator.rank());
  std::vector<const CallKind*> behind;
  if (trial.form == Form::stays_calls) behind = {calls.back()}, calls.pop_back();
  End end{.began = Clock::now()};
  bool is_over = false;
  try {
    for (const CallKind* kind : calls) kind->call(communicator, values);
    meeting.calls_are_over();
    is_over = true;
    if (trial.stays() && !meeting.wait_until_all_are_over()) ADD_FAILURE() << trial.text() << ": some do not hear";
    for (const CallKind* kind : behind) kind->call(communicator, values);
    end.left_from = Clock::now();
    communicator.finalize();
  } catch (const Error& error) {
    if (!is_over) meeting.calls_are_over();
    end.error = error;
  }
  end.over = Clock::now();
  return end;
}

struct Count {
  int differed = 0, heard = 0, left = 0;
};

// What is wrong with the ends of a trial; nothing if all is well.
std::string judge(const Trial& trial, const std::vector<End>& ends, Count& count) {
  std::string wrong;
  const auto note = [&](const std::string& what) { wrong += "\n  " + what; };
  const bool differ = trial.differ();
  std::optional<Clock::time_point> first_heard;
  const Error* first = nullptr;
  for (const End& end : ends) {
    if (end.over - end.began > kHearsWithin) note("that took long");
    if (!end.error) continue;
    if (!first_heard || end.over < *first_heard) first_heard = end.over;
    if (first == nullptr) first = &*end.error;
    if (!differ) note("an error though all made the same calls");
    if (end.error->code != ErrorCode::mismatch) note("not a mismatch");
    if (end.error->peer != first->peer || reason_of(*end.error) != reason_of(*first))
      note("not what another rank says");
  }
  if (first != nullptr && !names_two_calls_of_a_number(reason_of(*first))) note("not two calls of the same number");
  for (int rank = 0; rank < trial.size(); ++rank) {
    if (ends[rank].error) continue;
    if (first_heard && ends[rank].left_from > *first_heard) note("one left later, and did not hear");
    for (int other = 0; other < rank; ++other)
      if (!ends[other].error && trial.differ(rank, other)) note("two that differ believe that all went well");
  }
  if (differ) ++count.differed;
  for (const End& end : ends) ++(end.error ? count.heard : count.left);
  if (wrong.empty()) return "";
  wrong = trial.text() + ":" + wrong;
  for (const End& end : ends)
    wrong += "\n  " +
             (end.error ? std::string(to_string(end.error->code)) + " " + std::to_string(end.error->peer) + " " +
                              end.error->what()
                        : "left") +
             " after " + std::to_string((end.over - end.began) / 1us) + " us";
  return wrong;
}

// For other trials: --gtest_shuffle --gtest_random_seed=N
unsigned seed_for(int ranks) {
  return static_cast<unsigned>(100 * testing::UnitTest::GetInstance()->random_seed() + ranks);
}

class Mismatches : public testing::TestWithParam<std::string> {
 protected:
  // On every rank of a job of n: makes all trials, one after the other, each on a communicator of its own.
  void try_all(int n, std::span<const Trial> trials) {
    std::deque<Meeting> meetings;
    while (meetings.size() < trials.size()) meetings.emplace_back(n);
    Count count;
    const auto thrown = outcomes(n, settings(), [&](Communicator& world) {
      std::vector<std::int64_t> values(1000, 1);
      for (std::size_t i = 0; i < trials.size(); ++i) {
        Communicator communicator = world.split(0);
        meetings[i].ended(world.rank(), make(communicator, trials[i], meetings[i], values));
        world.barrier();
        if (world.rank() != 0) continue;
        const std::string wrong = judge(trials[i], meetings[i].ends(), count);
        EXPECT_EQ(wrong, "") << "on " << n << " ranks";
      }
    });
    for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
    expect_counts(n, trials.size(), count);
  }

  // So the trials are such ones, and in most of them nearly all hear.
  static void expect_counts(int n, std::size_t trials, const Count& count) {
    EXPECT_GE(count.differed, static_cast<int>(trials) * 3 / 4);
    EXPECT_GE(count.heard, count.left);
    std::printf("%d ranks: %zu trials, %d of calls that differ; %d heard of it, %d left\n", n, trials, count.differed,
                count.heard, count.left);
  }

  static Settings settings() {
    Settings settings;
    settings.transport = GetParam();
    settings.timeout = 60s;
    return settings;
  }

  static std::vector<Trial> all_trials(int n) {
    std::vector<Trial> trials;
    for (const CallKind& a : kCallKinds)
      for (const CallKind& b : kCallKinds)
        for (int mask = 0; mask < (1 << n) - 1; ++mask)
          for (const Form form : kForms) {
            if (&a > &b || (&a == &b) != (mask == 0)) continue;
            Trial trial{{&a, &b}, form, {}};
            for (int rank = 0; rank < n; ++rank) trial.of.push_back(mask >> rank & 1);
            if (trial.is_sound()) trials.push_back(trial);
          }
    return trials;
  }
};
INSTANTIATE_TEST_SUITE_P(Calls, Mismatches, testing::Values("shm", "tcp"), [](const auto& it) { return it.param; });

TEST_P(Mismatches, AreHeardByAllThatHaveNotLeftInTheSameWords) {
  for (const int n : {2, 3, 4}) {
    std::vector<Trial> trials = all_trials(n);
    std::shuffle(trials.begin(), trials.end(), std::mt19937(seed_for(n)));
    trials.resize(200);
    try_all(n, trials);
  }
}

// Whoever is through leaves the job, and the others hear by what the hub knows of it; also where that is the hub.
TEST_P(Mismatches, AreHeardAlsoOfRanksThatHaveLeftTheJob) {
  for (const int n : {2, 3, 4}) {
    std::vector<Trial> trials = all_trials(n);
    std::erase_if(trials, [](const Trial& trial) { return trial.stays(); });
    std::shuffle(trials.begin(), trials.end(), std::mt19937(seed_for(n)));
    trials.resize(kJobs);
    Count count;
    for (const Trial& trial : trials) {
      Meeting meeting(n);
      const auto thrown = outcomes(n, settings(), [&](Communicator& world) {
        std::vector<std::int64_t> values(1000, 1);
        const int rank = world.rank();
        meeting.ended(rank, make(world, trial, meeting, values));
      });
      for (const auto& error : thrown) EXPECT_FALSE(error) << error->what();
      EXPECT_EQ(judge(trial, meeting.ends(), count), "") << "on " << n << " ranks";
    }
    expect_counts(n, trials.size(), count);
  }
}

#ifndef TUTTI_BRIEF
// Every one: minutes.
class AllMismatches : public Mismatches {};
INSTANTIATE_TEST_SUITE_P(Exhaustive, AllMismatches, testing::Values("shm", "tcp"),
                         [](const auto& it) { return it.param; });
TEST_P(AllMismatches, AreHeardByAllThatHaveNotLeftInTheSameWords) {
  // A rank has 32,000 channels of shared memory in the life of a job.
  constexpr std::size_t kTrialsOfAJob = 4000;
  for (const int n : {2, 3, 4}) {
    const std::vector<Trial> all = all_trials(n);
    for (std::size_t done = 0; done < all.size(); done += kTrialsOfAJob) {
      const std::span<const Trial> some = std::span(all).subspan(done);
      try_all(n, some.first(std::min(some.size(), kTrialsOfAJob)));
    }
  }
}
#endif

}  // namespace
}  // namespace tutti::internal
