// One join after another through a store.
#include "tutti/store.h"

#include <gtest/gtest.h>

#include <deque>
#include <utility>

#include "control/control_ranks.h"

namespace tutti::internal {
namespace {

using namespace testing_ranks;

// What each process has of a store that is elsewhere.
class Handle final : public Store {
 public:
  explicit Handle(Store& store) : store_(store) {}
  void set(const std::string& key, const std::string& value) override { store_.set(key, value); }
  std::string get(const std::string& key, milliseconds timeout) override { return store_.get(key, timeout); }

 private:
  Store& store_;
};

// Rank 0 comes last, so that the others look for what it says while only an earlier join has said it. It comes a moment
// after them, or when their joins are over.
std::vector<Outcome> join_rank_0_last(const std::vector<Settings>& settings, const std::vector<Store*>& stores,
                                      bool is_too_late = false) {
  std::vector<Outcome> outcomes(settings.size());
  std::vector<std::thread> threads;
  for (std::size_t rank = settings.size(); rank-- > 0;) {
    if (rank == 0 && is_too_late) {
      for (std::thread& thread : std::exchange(threads, {})) thread.join();
    } else if (rank == 0) {
      std::this_thread::sleep_for(milliseconds(50));
    }
    threads.emplace_back([&, rank] { outcomes[rank] = join(settings[rank], stores[rank]); });
  }
  for (std::thread& thread : threads) thread.join();
  return outcomes;
}

TEST(ControlStore, ServesOneJoinAfterAnother) {
  for (const bool of_threads : {true, false}) {
    const auto store = make_memory_store();
    std::deque<Handle> handles;
    std::vector<Store*> stores;
    for (int rank = 0; rank < 3; ++rank) stores.push_back(of_threads ? store.get() : &handles.emplace_back(*store));
    for (int round = 0; round < 3; ++round) {
      auto ranks = join_rank_0_last(job(3), stores);
      for (const Outcome& rank : ranks) ASSERT_TRUE(rank.control) << rank.message();
      leave_all(ranks);
    }
  }
}

// A new object for each join, as in a new process.
class CountingHandle final : public Store {
 public:
  explicit CountingHandle(Store& store) : store_(store) {}
  void set(const std::string& key, const std::string& value) override { store_.set(key, value); }
  std::string get(const std::string& key, milliseconds timeout) override { return store_.get(key, timeout); }
  std::optional<std::int64_t> add(const std::string& key, std::int64_t delta) override {
    return store_.add(key, delta);
  }

 private:
  Store& store_;
};

TEST(ControlStore, ThatAddsServesJoinsOfOtherObjects) {
  const auto store = make_memory_store();
  for (int round = 0; round < 4; ++round) {
    std::deque<CountingHandle> handles;
    std::vector<Store*> stores;
    for (int rank = 0; rank < 3; ++rank) stores.push_back(&handles.emplace_back(*store));
    auto settings = job(3);
    if (round == 1) settings[2].size = 4;  // fails, and counts
    auto ranks = join_rank_0_last(settings, stores);
    for (const Outcome& rank : ranks) ASSERT_EQ(rank.control != nullptr, round != 1) << rank.message();
    if (round != 1) leave_all(ranks);
  }
  EXPECT_EQ(store->add("tutti/joins/2", 0), 4);
}

TEST(ControlStore, ThatDoesNotAddIsSuspectedOfOldKeys) {
  const auto store = make_memory_store();
  for (int round = 0; round < 2; ++round) {
    std::deque<Handle> handles;
    std::vector<Store*> stores;
    for (int rank = 0; rank < 3; ++rank) stores.push_back(&handles.emplace_back(*store));
    auto settings = job(3);
    if (round == 1)
      for (Settings& s : settings) s.join_timeout = milliseconds(500);
    auto ranks = join_rank_0_last(settings, stores, round == 1);
    for (const Outcome& rank : ranks)
      if (round == 0) {
        ASSERT_TRUE(rank.control) << rank.message();
      } else {
        EXPECT_TRUE(rank.says("if it still holds the keys of an earlier join (tutti/1/...)")) << rank.message();
      }
    if (round == 0) leave_all(ranks);
  }
}

TEST(ControlStore, ServesAJoinAfterOneThatFailed) {
  const auto store = make_memory_store();
  const std::vector<Store*> stores(3, store.get());
  auto wrong = job(3);
  wrong[2].size = 4;
  for (const Outcome& rank : join_rank_0_last(wrong, stores)) EXPECT_TRUE(rank.error);
  auto ranks = join_rank_0_last(job(3), stores);
  for (const Outcome& rank : ranks) EXPECT_TRUE(rank.control) << rank.message();
  leave_all(ranks);
}

}  // namespace
}  // namespace tutti::internal
