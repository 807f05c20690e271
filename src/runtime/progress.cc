#include "runtime/progress.h"

#include <algorithm>

#include "runtime/group.h"
#include "tutti/error.h"

namespace tutti::runtime {

Progress::Progress() : thread_([this] { run(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  news_.notify_all();
  thread_.join();
}

void Progress::drive(std::shared_ptr<Request> request) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(request));
  }
  news_.notify_all();
}

void Progress::drain(const Group& group) {
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] {
    return std::ranges::none_of(waiting_, [&](const auto& request) { return request->group.get() == &group; });
  });
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Request>& first = waiting_.front();
    lock.unlock();
    try {
      first->group->wait(*first);
    } catch (const Error&) {
      // The communicator keeps the failure; the next call on it throws it, and so does the request's Work.
    }
    lock.lock();
    waiting_.pop_front();
    news_.notify_all();
  }
}

}  // namespace tutti::runtime
