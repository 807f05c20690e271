// A thread that waits for calls, so that nobody else must: those whose work on a device waits for the host.
#pragma once

#include <condition_variable>
#include <functional>
#include <list>
#include <mutex>
#include <thread>

namespace tutti::internal {

class ProgressThread {
 public:
  ProgressThread();
  ~ProgressThread();  // the calls given to it are over by then
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Calls `wait`, which drives a call of the communicator `owner` until it is over, and may be called by two threads.
  // What `wait` holds is let go of after that. Thread-safe.
  void drive(const void* owner, std::function<void()> wait);
  // Waits for all calls of `owner` that it was given; returns once it has let go of them. Thread-safe.
  void drain(const void* owner);

 private:
  struct Waiting {
    const void* owner;
    std::function<void()> wait;
  };
  void run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::list<Waiting> waiting_;  // the first is being driven
  bool ends_ = false;
  std::thread thread_;  // last
};

}  // namespace tutti::internal
