// What advances a rank's communicators: one lock, under which any thread of the rank moves what can be moved, and one
// way to sleep until there is news.
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

  // Held while anything is advanced. yield() lets another thread of this rank have it. In a forked child nobody
  // takes it: Error{unsupported}.
  class Lock {
   public:
    explicit Lock(Engine& engine) : engine_(engine), lock_(engine.mutex_, std::defer_lock) { take(); }
    void yield() {
      if (engine_.wanting_.load(std::memory_order_relaxed) == 0) return;
      lock_.unlock();
      take();
    }
    // Lets go of it meanwhile.
    class ScopedUnlock {
     public:
      explicit ScopedUnlock(Lock& lock) : lock_(lock) { lock_.lock_.unlock(); }
      ~ScopedUnlock() { lock_.take(); }
      ScopedUnlock(const ScopedUnlock&) = delete;
      ScopedUnlock& operator=(const ScopedUnlock&) = delete;

     private:
      Lock& lock_;
    };

   private:
    friend class Engine;
    void take() {
      if (engine_.wanting_.load(std::memory_order_relaxed) != 0 || !lock_.try_lock()) queue();
    }
    void queue();
    Engine& engine_;
    std::unique_lock<BiasedMutex> lock_;
  };

  // Within one, memory that peers have lent may be touched. Under the lock.
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

  const Crowding& crowding() const { return crowding_; }
  void set_crowded() { crowding_.set_crowded(); }  // before the first call
  // Whether others want the processor of the thread that waits: at each of its looks.
  void watch_processor(const Look& look);
  void yield();  // with the lock held meanwhile

  // Calls that wait for a device, which rings nobody: sleeps are short then.
  void watch_devices(int more) {
    on_devices_ += more;
    if (more > 0) wake();
  }
  // Sleeps until a transport has news, after one more advance_all() that moved nothing and after which `is_over` is
  // false. Releases the lock meanwhile.
  void sleep(Lock& lock, const std::function<bool()>& is_over);
  // What a thread that sleeps may be waiting for has happened.
  void wake() {
    if (asleep_) ring();
  }
  void ring() { sleeper_.ring(); }  // thread-safe
  Sleeper& sleeper() { return sleeper_; }

  // When the process exits: takes the lock if it can be had within a moment, and gives the calls of the members another
  // moment to end; then, still under the lock, `finish`. Not under the lock.
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
  std::uint64_t moves() const;

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
