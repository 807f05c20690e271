// Whether ranks take themselves to share processors, by where their threads may run when they join.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/job.h"
#include "topology/processors.h"
#include "tutti/store.h"

namespace tutti::runtime {
namespace {

using topology::Processors;

// What each rank of a job says whose rank r joins on places[r].
std::vector<bool> crowded_on(const std::vector<Processors>& places) {
  const auto store = make_memory_store();
  std::vector<std::shared_ptr<Job>> jobs(places.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < places.size(); ++r)
    threads.emplace_back([&, r] {
      EXPECT_TRUE(topology::run_on(places[r]));
      Settings settings;
      settings.rank = static_cast<int>(r);
      settings.size = static_cast<int>(places.size());
      jobs[r] = Job::join(settings, store.get());
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> crowded;
  for (const auto& job : jobs) crowded.push_back(job->is_crowded());
  threads.clear();
  for (auto& job : jobs) threads.emplace_back([&job] { job.reset(); });  // rank 0 stays until the others have left
  for (std::thread& thread : threads) thread.join();
  return crowded;
}

class Crowded : public testing::Test {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "there is but one processor";
    if (topology::usable_processors() < 2) GTEST_SKIP() << "there is but one processor's share";
  }
  const Processors all_ = topology::allowed_processors();
  const Processors first_ = {all_.front()}, last_ = {all_.back()}, both_ = {all_.front(), all_.back()};
};

TEST_F(Crowded, NotOnAProcessorEach) { EXPECT_EQ(crowded_on({first_, last_}), std::vector(2, false)); }

TEST_F(Crowded, NotWhereTheyMayAllUseEnough) { EXPECT_EQ(crowded_on({both_, both_}), std::vector(2, false)); }

TEST_F(Crowded, OnTheSameProcessor) { EXPECT_EQ(crowded_on({last_, last_}), std::vector(2, true)); }

TEST_F(Crowded, AllWhereSomeAre) { EXPECT_EQ(crowded_on({both_, first_, both_}), std::vector(3, true)); }

}  // namespace
}  // namespace tutti::runtime
