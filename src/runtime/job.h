// A rank's membership in a job: its transports, its control plane, and the engine that advances its communicators.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/control.h"
#include "executor/meeting.h"
#include "executor/symmetric_memory.h"
#include "runtime/biased_mutex.h"
#include "runtime/crowding.h"
#include "runtime/partings.h"
#include "runtime/patience.h"
#include "runtime/progress.h"
#include "selection/choose.h"
#include "transport/inproc/hub.h"
#include "transport/inproc/transport.h"
#include "transport/shm/transport.h"
#include "transport/sleeper.h"
#include "transport/tcp/transport.h"
#include "transport/verbs/transport.h"
#include "tutti/settings.h"
#include "tutti/store.h"

namespace tutti::runtime {

class Group;
class Request;

class Job : public std::enable_shared_from_this<Job> {
 public:
  // Blocks until all ranks have joined. `hub` makes it a job of threads over inproc. Throws Error.
  // `place` says that all ranks are threads of this process, to which it is given.
  static std::shared_ptr<Job> join(const Settings& settings, Store* store, std::shared_ptr<inproc::Hub> hub = nullptr,
                                   std::shared_ptr<MeetingPlace> place = nullptr);
  ~Job();

  int rank() const { return settings_.rank; }
  int size() const { return settings_.size; }
  const Settings& settings() const { return settings_; }
  const Log& log() const { return log_; }
  const ChoiceTable& table() const { return table_; }  // rank 0's, the same on every rank
  Control& control() { return *control_; }
  int host_of(int rank) const { return host_[rank]; }
  const Crowding& crowding() const { return crowding_; }    // under the lock, once there are calls
  std::size_t cache_bytes() const { return cache_bytes_; }  // of the largest cache of a processor of this rank's
  Partings& partings() { return partings_; }
  // Leaves the job in good order, with all communicators that are left: for when the process exits.
  void leave();
  bool has_left(int rank) const { return left_[rank].load(std::memory_order_acquire); }
  shm::Transport* shm() const { return shm_.get(); }
  verbs::Transport* verbs() const { return verbs_.get(); }
  // Whether this rank, and whether any rank of the job, could come by device memory.
  bool sees_gpus() const { return sees_gpus_; }
  bool has_gpus() const { return has_gpus_; }
  // Whether a call's copies are put on its device when it is made, to wait there for ranks that have not come to it
  // yet. Not where all ranks are threads of this process, whose devices they share, nor where there is but one, nor
  // where CUDA was told to wait for what it is given.
  bool goes_ahead() const { return goes_ahead_; }
  // Where those meet that have device memory; nullptr where there can be none, and where other processes have their
  // part in the job.
  MeetingPlace* meeting_place() const { return sees_gpus_ && (is_threads_ || size() == 1) ? place_.get() : nullptr; }
  // Made when first asked for. Under the engine's lock.
  Progress& progress();
  std::shared_ptr<SymmetricMemory> allocate(std::size_t bytes) const;
  // A peer did not say that it leaves this rank's symmetric memory alone: none of it is used again.
  void keep_memory() {
    if (shm_ != nullptr) shm_->own().keep_all();
  }

  // In a child that was forked from this rank's process, which has no part in the job, both throw Error{unsupported}:
  // this one, and whatever takes the engine's lock.
  void refuse_if_forked() const;
  bool is_forked() const { return is_forked_; }
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();

  // The channel to world rank `peer`, and, from the higher rank, a connection asked for where there is none.
  // Thread-safe under the engine's lock.
  std::unique_ptr<Channel> open(std::uint64_t communicator, int peer);

  // --- the engine
  // Held while anything is advanced. breathe() lets another thread of this rank have it.
  class Lock {
   public:
    explicit Lock(Job& job) : job_(job), lock_(job.engine_, std::defer_lock) { take(); }
    void breathe() {
      if (job_.wanting_.load(std::memory_order_relaxed) == 0) return;
      lock_.unlock();
      take();
    }
    // Lets go of it meanwhile.
    class Break {
     public:
      explicit Break(Lock& lock) : lock_(lock) { lock_.lock_.unlock(); }
      ~Break() { lock_.take(); }
      Break(const Break&) = delete;
      Break& operator=(const Break&) = delete;

     private:
      Lock& lock_;
    };

   private:
    friend class Job;
    void take() {
      if (job_.wanting_.load(std::memory_order_relaxed) != 0 || !lock_.try_lock()) queue();
    }
    void queue();
    Job& job_;
    std::unique_lock<BiasedMutex> lock_;
  };
  // Within one, memory that peers have lent may be touched. Under the lock.
  class Turn {
   public:
    explicit Turn(Job& job) : transport_(job.lender_) {
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
  void add(Group& group);
  void remove(Group& group);
  void advance_all();                                            // under the lock
  void watch_driven(std::chrono::steady_clock::time_point now);  // all communicators' calls; under the lock
  // Whether others want the processor of the thread that waits: at each of its looks. Under the lock.
  void watch_processor(const Look& look);
  void yield();  // under the lock, which is held meanwhile
  // Calls that wait for a device, which rings nobody: sleeps are short then. Under the lock.
  void watch_devices(int more) {
    on_devices_ += more;
    if (more > 0) wake();
  }
  // Sleeps until a transport has news, after one more advance_all() that moved nothing and did not end `request`. Under
  // the lock, released meanwhile.
  void sleep(Lock& lock, const Request& request);
  // What a thread that sleeps may be waiting for has happened. Under the lock.
  void wake() {
    if (asleep_) ring();
  }
  void ring() { sleeper_.ring(); }

 private:
  Job(const Settings& settings, std::shared_ptr<inproc::Hub> hub, std::shared_ptr<MeetingPlace> place);
  std::string open_verbs();
  bool takes_engine_within(std::chrono::milliseconds limit);
  void find_hosts();
  void find_fabric();
  void log_decisions() const;
  std::uint64_t moves() const;
  Transport& transport_to(int peer);
  void on_connection(int peer, Path path, std::uint64_t communicator, int fd, const Error* error);
  void on_notice(const Notice& notice);

  // While it lives, a thread of this rank sleeps for all of them.
  class Asleep {
   public:
    explicit Asleep(Job& job);
    ~Asleep();
    Asleep(const Asleep&) = delete;
    Asleep& operator=(const Asleep&) = delete;

   private:
    Job& job_;
  };
  std::array<Transport*, 4> transports() const { return {shm_.get(), tcp_.get(), verbs_.get(), inproc_.get()}; }

  Settings settings_;
  const Log log_{settings_};
  ChoiceTable table_;
  bool is_own_table_ = false;  // and not the built-in one
  Sleeper sleeper_;
  std::unique_ptr<shm::Transport> shm_;
  std::unique_ptr<tcp::Transport> tcp_;
  std::unique_ptr<verbs::Transport> verbs_;
  std::unique_ptr<inproc::Transport> inproc_;
  Transport* lender_ = nullptr;  // the one whose peers touch each other's memory, if there is one
  std::vector<int> host_;
  bool sees_gpus_ = false, has_gpus_ = false;
  const bool is_threads_, goes_ahead_;
  const std::shared_ptr<MeetingPlace> place_;
  std::size_t cache_bytes_ = 0;
  std::vector<bool> by_verbs_;  // peers that are reached so
  bool by_tcp_alone_ = false;
  std::unique_ptr<std::atomic<bool>[]> left_;
  std::set<int> asked_;  // peers of this host that a connection has been asked to

  bool is_forked_ = false;  // then wanting_ is never 0, so that nobody takes the engine without looking here
  BiasedMutex engine_;
  std::atomic<int> wanting_{0};         // threads that want the engine
  std::atomic<std::uint64_t> turn_{0};  // counts those that wanted it and got it
  Crowding crowding_;
  bool asleep_ = false;
  int on_devices_ = 0;
  std::mutex news_mutex_;         // taken inside the engine's lock
  std::uint64_t wakes_ = 0;       // written under both, read under either
  std::condition_variable news_;  // it has grown
  std::mutex groups_mutex_;       // taken by the control thread too; inside the engine's lock
  std::vector<Group*> groups_;
  std::map<int, std::string> lost_;           // peers, and why
  std::map<std::uint64_t, Notice> poisoned_;  // communicators, also such as this rank has not made yet
  Partings partings_{log_};

  std::unique_ptr<Control> control_;  // behind the above: its thread calls into it
  std::unique_ptr<Progress> progress_;
};

}  // namespace tutti::runtime
