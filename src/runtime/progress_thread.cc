#include "runtime/progress_thread.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>
#include <vector>

namespace tutti::internal {

namespace {

// The communicator keeps a failure; the next call on it throws it, and so does the call's Work.
void run_quietly(const std::function<void()>& wait) try { wait(); } catch (const std::exception&) {
}

}  // namespace

ProgressThread::ProgressThread() : thread_([this] { run(); }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  news_.notify_all();
  thread_.join();
}

void ProgressThread::drive(const void* owner, std::function<void()> wait) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back({owner, std::move(wait)});
  }
  news_.notify_all();
}

void ProgressThread::drain(const void* owner) {
  const auto is_its = [&](const Waiting& call) { return call.owner == owner; };
  std::unique_lock lock(mutex_);
  std::vector<Waiting> its;
  std::ranges::copy_if(waiting_, std::back_inserter(its), is_its);
  lock.unlock();
  for (const Waiting& call : its) run_quietly(call.wait);
  its.clear();
  lock.lock();
  if (!waiting_.empty())
    waiting_.erase(std::remove_if(std::next(waiting_.begin()), waiting_.end(), is_its), waiting_.end());
  news_.wait(lock, [&] { return std::ranges::none_of(waiting_, is_its); });
}

void ProgressThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    news_.wait(lock, [&] { return ends_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    const Waiting& first = waiting_.front();
    lock.unlock();
    run_quietly(first.wait);
    lock.lock();
    waiting_.pop_front();
    news_.notify_all();
  }
}

}  // namespace tutti::internal
