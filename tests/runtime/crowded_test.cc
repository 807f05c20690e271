// Whether ranks take themselves to share processors, by where their threads may run when they join, and by what they
// see later.
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "runtime/group.h"
#include "runtime/job.h"
#include "topology/processors.h"
#include "tutti/store.h"

namespace tutti::internal {
namespace {

using topology::Processors;

// What each rank of a job says whose rank r joins on places[r], and then runs `body(job)`.
std::vector<bool> crowded_on(const std::vector<Processors>& places,
                             const std::function<void(const std::shared_ptr<Job>&)>& body = {},
                             const std::string& transport = "auto") {
  const auto store = make_memory_store();
  std::vector<std::shared_ptr<Job>> jobs(places.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < places.size(); ++r)
    threads.emplace_back([&, r] {
      EXPECT_TRUE(topology::run_on(places[r]));
      Settings settings;
      settings.rank = static_cast<int>(r);
      settings.size = static_cast<int>(places.size());
      settings.transport = transport;
      jobs[r] = Job::join(settings, store.get());
      if (body) body(jobs[r]);
    });
  for (std::thread& thread : threads) thread.join();
  std::vector<bool> crowded;
  for (const auto& job : jobs) crowded.push_back(job->engine().crowding().is_crowded());
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

// As containers that share a machine: they have joined as ranks that have a processor each.
TEST_F(Crowded, RanksThatShareAProcessorAndWereNotToldFindOut) {
  const auto find_out = [&](const std::shared_ptr<Job>& job) {
    EXPECT_FALSE(job->engine().crowding().is_crowded());
    EXPECT_TRUE(topology::run_on(last_));
    std::vector<int> members(job->size());
    std::iota(members.begin(), members.end(), 0);
    const auto group = Group::make(job, 1, Members(members, job->rank()));
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    std::int32_t all[2] = {};  // how many are crowded, and how many want no more
    while (all[0] < job->size() && all[1] == 0) {
      const std::int32_t mine[2] = {job->engine().crowding().is_crowded(), std::chrono::steady_clock::now() > give_up};
      group->run({.collective = Collective::all_reduce, .dtype = DType::int32, .count = 2}, {mine}, {all});
    }
    // Not what each says later: a rank that is alone for a while is crowded no more.
    EXPECT_EQ(all[0], job->size()) << job->settings().transport;
  };
  for (const char* transport : {"shm", "tcp"}) crowded_on({first_, last_}, find_out, transport);
}

}  // namespace
}  // namespace tutti::internal
