#include "runtime/progress.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <vector>

#include "runtime/group.h"
#include "tutti/error.h"

namespace tutti::runtime {

namespace {

// The communicator keeps a failure; the next call on it throws it, and so does the request's Work.
void wait_for(Request& request) try { request.group->wait_untold(request); } catch (const std::exception&) {
}

}  // namespace

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

void Progress::drain(Group& group) {
  const auto is_its = [&](const std::shared_ptr<Request>& request) { return request->group.get() == &group; };
  std::unique_lock lock(mutex_);
  std::vector<std::shared_ptr<Request>> its;
  std::ranges::copy_if(waiting_, std::back_inserter(its), is_its);
  lock.unlock();
  for (const auto& request : its) wait_for(*request);
  its.clear();
  lock.lock();
  if (!waiting_.empty())
    waiting_.erase(std::remove_if(std::next(waiting_.begin()), waiting_.end(), is_its), waiting_.end());
  news_.wait(lock, [&] { return std::ranges::none_of(waiting_, is_its); });
}

void Progress::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const std::shared_ptr<Request>& first = waiting_.front();
    lock.unlock();
    wait_for(*first);
    lock.lock();
    waiting_.pop_front();
    news_.notify_all();
  }
}

}  // namespace tutti::runtime
