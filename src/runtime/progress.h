// A thread that drives calls which nobody waits for: those that were put on a stream.
#pragma once

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

namespace tutti::runtime {

class Group;
class Request;

class Progress {
 public:
  Progress();
  ~Progress();  // the calls given to it are over by then
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Thread-safe. Keeps the request, and with it its communicator, until it is over.
  void drive(std::shared_ptr<Request> request);
  // Thread-safe. Returns once all that it was given of this communicator is over and let go of.
  void drain(const Group& group);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::deque<std::shared_ptr<Request>> waiting_;  // the first is being driven
  bool ends_ = false;
  std::thread thread_;  // last
};

}  // namespace tutti::runtime
