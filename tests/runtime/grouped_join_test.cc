// Joins of a group: tests/c/groups.c has those of real communicators.
#include "runtime/grouped_join.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <latch>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/call_group.h"
#include "tutti/communicator.h"
#include "tutti/group.h"

namespace tutti::internal {
namespace {

using namespace std::chrono_literals;

// What has happened to joins, in its order.
class Events {
 public:
  void add(const std::string& what) {
    const std::lock_guard lock(mutex_);
    all_.push_back(what);
  }
  std::vector<std::string> all() const { return all_; }

 private:
  std::mutex mutex_;
  std::vector<std::string> all_;
};

class Join final : public GroupedJoin {
 public:
  Join(Events& events, std::string name, const void* follows, std::function<void()> body)
      : events_(events), name_(std::move(name)), follows_(follows), body_(std::move(body)) {}
  ~Join() override { events_.add(name_ + (is_handed_over_ ? " stays" : " leaves")); }
  void join() override {
    body_();
    events_.add(name_ + " has joined");
  }
  void hand_over() noexcept override {
    is_handed_over_ = true;
    EXPECT_EQ(std::this_thread::get_id(), caller_);
  }
  const void* follows() const override { return follows_; }

 private:
  Events& events_;
  const std::string name_;
  const void* const follows_;
  const std::function<void()> body_;
  const std::thread::id caller_ = std::this_thread::get_id();
  bool is_handed_over_ = false;
};

using Joins = std::vector<std::unique_ptr<GroupedJoin>>;

void add(Joins& joins, Events& events, const std::string& name, const void* follows, std::function<void()> body) {
  joins.push_back(std::make_unique<Join>(events, name, follows, std::move(body)));
}

TEST(GroupedJoins, AllWaitForEachOther) {
  for (const int count : {0, 1, 2, 16}) {
    Events events;
    std::latch all(count);
    Joins joins;
    for (int i = 0; i < count; ++i) add(joins, events, std::to_string(i), nullptr, [&] { all.arrive_and_wait(); });
    join_together(joins);
    joins.clear();
    const std::vector<std::string> seen = events.all();
    ASSERT_EQ(seen.size(), 2u * count);
    for (int i = 0; i < count; ++i) EXPECT_EQ(seen[count + i], std::to_string(i) + " stays");
  }
}

// Two communicators of this thread, each split twice: both at once, each in the order in which it was asked for.
TEST(GroupedJoins, ThoseThatFollowOneCommunicatorKeepTheirOrder) {
  Events events;
  const int communicators[2] = {};
  std::latch both(2);
  std::atomic<bool> is_split[2] = {};
  Joins joins;
  for (int i = 0; i < 2; ++i)
    add(joins, events, "first", &communicators[i], [&, i] {
      both.arrive_and_wait();
      std::this_thread::sleep_for(20ms);
      is_split[i] = true;
    });
  for (int i = 0; i < 2; ++i) add(joins, events, "second", &communicators[i], [&, i] { EXPECT_TRUE(is_split[i]); });
  join_together(joins);
  joins.clear();
  EXPECT_EQ(events.all().size(), 8u);
}

// Made in a join that has a thread of its own, as all but the last one have: counts down when that ends, and so behind
// what is noted of the join.
class AtEndOfThread {
 public:
  explicit AtEndOfThread(std::latch& latch) : latch_(latch) {}
  ~AtEndOfThread() { latch_.count_down(); }
  AtEndOfThread(const AtEndOfThread&) = delete;
  AtEndOfThread& operator=(const AtEndOfThread&) = delete;

 private:
  std::latch& latch_;
};

TEST(GroupedJoins, IfOneFailsNoneIsHandedOverAndTheFirstErrorIsThrown) {
  Events events;
  std::latch failed(1);
  Joins joins;
  add(joins, events, "late", nullptr, [&] {
    failed.wait();
    throw std::runtime_error("because the other one failed");
  });
  add(joins, events, "early", nullptr, [&] {
    thread_local const AtEndOfThread told(failed);
    throw std::runtime_error("the reason");
  });
  add(joins, events, "well", nullptr, [&] { failed.wait(); });
  std::string said;
  try {
    join_together(joins);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  joins.clear();
  EXPECT_EQ(said, "the reason");
  EXPECT_EQ(events.all(), (std::vector<std::string>{"well has joined", "late leaves", "early leaves", "well leaves"}));
}

// What follows a join that failed is not tried.
TEST(GroupedJoins, NothingFollowsAJoinThatFailed) {
  Events events;
  const int communicator = 0;
  Joins joins;
  add(joins, events, "first", &communicator, [] { throw std::runtime_error("no"); });
  add(joins, events, "second", &communicator, [] { FAIL(); });
  EXPECT_THROW(join_together(joins), std::runtime_error);
  joins.clear();
  EXPECT_EQ(events.all(), (std::vector<std::string>{"first leaves", "second leaves"}));
}

// The inner end makes nothing.
TEST(GroupedJoins, TheOutermostEndMakesThem) {
  Events events;
  group_start();
  {
    const GroupScope inner;
    CallGroup::add(std::make_unique<Join>(events, "it", nullptr, [] {}));
  }
  EXPECT_TRUE(events.all().empty());
  group_end();
  EXPECT_EQ(events.all(), (std::vector<std::string>{"it has joined", "it stays"}));
}

TEST(GroupedJoins, AGroupThatIsGivenUpMakesNone) {
  Events events;
  try {
    const GroupScope group;
    CallGroup::add(std::make_unique<Join>(events, "it", nullptr, [] { FAIL(); }));
    throw std::runtime_error("the caller has changed its mind");
  } catch (const std::runtime_error&) {
  }
  EXPECT_EQ(events.all(), std::vector<std::string>{"it leaves"});
}

TEST(GroupedJoins, AGroupWithAWrongCallMakesNone) {
  Events events;
  Communicator::run_threads(1, [&](Communicator& world) {
    group_start();
    CallGroup::add(std::make_unique<Join>(events, "it", nullptr, [] { FAIL(); }));
    world.all_reduce(static_cast<const void*>(nullptr), nullptr, 1, DType::float32, Op::sum);
    EXPECT_THROW(group_end(), Error);
  });
  EXPECT_EQ(events.all(), std::vector<std::string>{"it leaves"});
}

}  // namespace
}  // namespace tutti::internal
