// What advances a rank's communicators. Any thread of the rank that holds the engine's lock may move all of its calls.
// A thread that finds nothing to move sleeps until there is news.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

#include "runtime/backoff_policy.h"
#include "runtime/biased_mutex.h"
#include "runtime/crowding.h"
#include "runtime/job_member.h"
#include "transport/sleeper.h"
#include "transport/transport.h"

namespace tutti::internal {

class Engine {
 public:
  explicit Engine(int rank) : rank_(rank) {}

  // A thread holds it while it advances calls. yield() lets another thread of this rank have it, if one wants it. In a
  // forked child, taking it throws Error{unsupported}.
  class Lock {
   public:
    explicit Lock(Engine& engine) : engine_(engine) { take(); }
    ~Lock() {
      if (held_) release();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    void yield() {
      if (!is_wanted()) return;
      release();
      take();
    }
    bool is_wanted() const { return engine_.wanting_.load(std::memory_order_relaxed) != 0; }  // by another thread
    // Releases the lock while it lives.
    class ScopedUnlock {
     public:
      explicit ScopedUnlock(Lock& lock) : lock_(lock) { lock_.release(); }
      ~ScopedUnlock() { lock_.take(); }
      ScopedUnlock(const ScopedUnlock&) = delete;
      ScopedUnlock& operator=(const ScopedUnlock&) = delete;

     private:
      Lock& lock_;
    };

   private:
    friend class Engine;
    [[gnu::always_inline]] void take() {
      if (engine_.wanting_.load(std::memory_order_relaxed) != 0 || !engine_.mutex_.try_lock()) queue();
      held_ = true;
    }
    [[gnu::always_inline]] void release() {
      held_ = false;
      engine_.mutex_.unlock();
    }
    void queue();
    Engine& engine_;
    bool held_ = false;
  };

  // While one lives, this rank may touch memory that peers have lent (Transport::begin_turn). Under the lock.
  class Turn {
   public:
    explicit Turn(Engine& engine) : transport_(engine.lender_) {
      if (transport_ != nullptr) transport_->begin_turn();
    }
    ~Turn() {
      if (transport_ != nullptr) transport_->end_turn();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    Transport* const transport_;
  };

  // Before the first call: the transports that it sleeps on, and whether their messages all pass through the kernel.
  void use(std::vector<Transport*> transports, bool wakes_sleepers);

  // Under the lock, and so is what follows unless it says otherwise.
  void add(JobMember& member) { members_.push_back(&member); }
  void remove(JobMember& member) { std::erase(members_, &member); }
  void advance_all() {
    for (std::size_t i = 0; i < members_.size(); ++i) members_[i]->advance();
  }
  void watch_driven(std::chrono::steady_clock::time_point now);
  std::uint64_t moves() const;  // grows whenever a call has moved

  const Crowding& crowding() const { return crowding_; }
  void set_crowded() { crowding_.set_crowded(); }  // before the first call
  // A waiting thread calls it at each look at the clock: finds out whether others want its processor.
  void watch_processor(const Look& look);
  void yield();  // with the lock held meanwhile

  // Counts the calls that wait for a device. A device wakes nobody, so sleeps are short as long as there are any.
  void watch_devices(int more) {
    on_devices_ += more;
    if (more > 0) wake();
  }
  // Sleeps until a transport has news, after one more advance_all() that moved nothing and after which `is_over` is
  // false. Releases the lock meanwhile. Sleeps no longer than `longest`.
  void sleep(Lock& lock, const std::function<bool()>& is_over,
             std::chrono::nanoseconds longest = std::chrono::nanoseconds::max());
  // Wakes a sleeping thread, if there is one: what it waits for may have happened.
  void wake() {
    if (asleep_) ring();
  }
  void ring() { sleeper_.ring(); }  // thread-safe
  Sleeper& sleeper() { return sleeper_; }

  // The process exits. Tries for a moment to take the lock, gives the members' calls another moment to end, and then
  // calls `finish` for each member. The caller does not hold the lock.
  void stop(const std::function<void(JobMember&)>& finish);

  // In a child that was forked from this rank's process, refuse_if_forked() throws Error{unsupported}, and so does
  // whatever takes the lock. set_forked(): no other thread is there.
  void set_forked();
  bool is_forked() const { return is_forked_; }
  void refuse_if_forked() const;

 private:
  // While it lives, a thread of this rank sleeps for all of them.
  class Asleep {
   public:
    explicit Asleep(Engine& engine);
    ~Asleep();
    Asleep(const Asleep&) = delete;
    Asleep& operator=(const Asleep&) = delete;

   private:
    Engine& engine_;
  };
  bool lock_within(std::chrono::milliseconds limit);

  const int rank_;
  bool is_forked_ = false;  // then wanting_ is never 0, so that nobody takes the lock without looking here
  BiasedMutex mutex_;
  std::atomic<int> wanting_{0};           // threads that want the lock
  std::atomic<std::uint64_t> served_{0};  // counts those that wanted it and got it

  std::vector<JobMember*> members_;
  std::vector<Transport*> transports_;
  Transport* lender_ = nullptr;  // the one that has turns, if there is one
  bool wakes_sleepers_ = false;
  Crowding crowding_;

  Sleeper sleeper_;
  bool asleep_ = false;
  int on_devices_ = 0;
  std::mutex news_mutex_;         // taken inside the lock
  std::uint64_t wakes_ = 0;       // written under both, read under either
  std::condition_variable news_;  // it has grown
};

}  // namespace tutti::internal
