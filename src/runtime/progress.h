// A thread that drives calls which nobody need wait for: those that wait on a device for the host.
#pragma once

#include <condition_variable>
#include <list>
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
  // Thread-safe. Waits for all that it was given of this communicator; returns once it has let go of that.
  void drain(Group& group);

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable news_;
  std::list<std::shared_ptr<Request>> waiting_;  // the first is being driven
  bool ends_ = false;
  std::thread thread_;  // last
};

}  // namespace tutti::runtime
