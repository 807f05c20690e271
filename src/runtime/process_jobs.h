// What a process's jobs need when it forks or exits.
//
// fork(): the child has copies of this rank's memory and connections, and none of its threads. It has no part in the
// job: in the child every call throws, and nothing is destroyed, for that would write to shared memory and change what
// descriptors stand for, in the parent too.
//
// exit() and quick_exit(): communicators that nobody has destroyed leave in good order, as destructors would. Calls
// that are under way get a second to end, and are aborted then. Later calls of the process fail at once.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace tutti::internal {

// A job as the process that it is in sees it.
class ProcessJob {
 public:
  virtual ~ProcessJob() = default;
  // Leaves the job in good order, with all communicators that are left: for when the process exits.
  virtual void leave() = 0;
  // Around a fork(), on the thread that forks.
  virtual void before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;
};

// The jobs of this process. Thread-safe.
class ProcessJobs {
 public:
  static ProcessJobs& here();  // never destroyed
  void add(const std::shared_ptr<ProcessJob>& job);

 private:
  ProcessJobs();
  void before_fork();
  void after_fork_in_parent();
  void after_fork_in_child();
  void leave_all();

  std::mutex mutex_;
  std::vector<std::weak_ptr<ProcessJob>> jobs_;
  std::vector<std::shared_ptr<ProcessJob>> forking_;  // between before_fork() and after it
  std::vector<std::shared_ptr<ProcessJob>> parents_;  // in a child: never destroyed
};

}  // namespace tutti::internal
