// A thread that drives calls, so that nobody else must: those whose work on a device waits for the host, those that
// advance while their caller computes (Settings::progress), and those that have somebody to tell when they are over.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "runtime/engine.h"
#include "runtime/job_member.h"
#include "tutti/error.h"

namespace tutti::internal {

class ProgressThread {
 public:
  // Told when its call is over, and how: on this thread, without the engine's lock.
  using Tell = std::function<void(const std::optional<Error>&)>;

  explicit ProgressThread(Engine& engine);
  ~ProgressThread();  // the calls given to it are over by then
  // As the destructor, but may be called on this thread itself, which ends after it has let go of its last call.
  static void end(std::unique_ptr<ProgressThread> thread);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Drives a started call of the communicator `owner` until it is over, and lets go of it when `tell` has returned.
  // Under the engine's lock.
  void drive(JobMember& owner, std::shared_ptr<Request> request, Tell tell = {});
  // Waits until it has let go of all calls of `owner`; on this thread itself, does not wait. Thread-safe.
  void drain(const JobMember& owner);
  bool has_calls_of(const JobMember& owner) const;  // thread-safe; on this thread itself, false

 private:
  struct Driven {
    JobMember* owner;
    std::shared_ptr<Request> request;
    Tell tell;
  };
  bool take_new();
  void advance_until_one_is_over();
  bool any_is_over() const;
  void let_go_of_those_over();
  void give_up();

  Engine& engine_;
  std::vector<Driven> driven_;  // its own
  mutable std::mutex mutex_;    // taken inside the engine's lock; guards what follows
  std::condition_variable news_;
  std::vector<Driven> new_;
  std::vector<const JobMember*> owners_;  // one for each call that was given to it and not let go of
  bool ends_ = false;
  bool deletes_itself_ = false;
  std::atomic<bool> has_new_{false};
  std::thread thread_;  // last
};

}  // namespace tutti::internal
