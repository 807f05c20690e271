#include "runtime/progress_thread.h"

#include <emmintrin.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "reduce/float_environment.h"
#include "runtime/request.h"

namespace tutti::internal {

ProgressThread::ProgressThread(Engine& engine)
    : engine_(engine), thread_([this] {
        while (take_new()) {
          advance_until_one_is_over();
          let_go_of_those_over();
        }
        if (deletes_itself_) delete this;
      }) {}

ProgressThread::~ProgressThread() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  news_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ProgressThread::end(std::unique_ptr<ProgressThread> thread) {
  if (thread == nullptr || std::this_thread::get_id() != thread->thread_.get_id()) return;  // the destructor does it
  ProgressThread& self = *thread.release();
  self.thread_.detach();
  self.deletes_itself_ = true;
  const std::lock_guard lock(self.mutex_);
  self.ends_ = true;
}

void ProgressThread::drive(JobMember& owner, std::shared_ptr<Request> request, Tell tell) {
  {
    const std::lock_guard lock(mutex_);
    owners_.push_back(&owner);
    new_.push_back({&owner, std::move(request), std::move(tell)});
    has_new_.store(true, std::memory_order_relaxed);
  }
  news_.notify_all();
  engine_.wake();  // it may sleep there for other calls
}

void ProgressThread::drain(const JobMember& owner) {
  if (std::this_thread::get_id() == thread_.get_id()) return;
  std::unique_lock lock(mutex_);
  news_.wait(lock, [&] { return std::ranges::find(owners_, &owner) == owners_.end(); });
}

bool ProgressThread::has_calls_of(const JobMember& owner) const {
  if (std::this_thread::get_id() == thread_.get_id()) return false;
  const std::lock_guard lock(mutex_);
  return std::ranges::find(owners_, &owner) != owners_.end();
}

// Waits for calls if it has none. False where there will be none.
bool ProgressThread::take_new() {
  std::unique_lock lock(mutex_);
  if (driven_.empty()) news_.wait(lock, [&] { return ends_ || !new_.empty(); });
  std::ranges::move(new_, std::back_inserter(driven_));
  new_.clear();
  has_new_.store(false, std::memory_order_relaxed);
  return !driven_.empty();
}

bool ProgressThread::any_is_over() const {
  return std::ranges::any_of(driven_, [](const Driven& each) { return each.request->is_over(); });
}

// Or until there are new ones.
void ProgressThread::advance_until_one_is_over() {
  using Clock = BackoffPolicy::Clock;
  Engine::Lock lock(engine_);
  const FloatEnvironment environment;
  // The caller may compute on the same processor, where a yield would let it have all of its time slice. Whoever sleeps
  // gets the processor as soon as there is news. But a device rings nobody.
  const bool on_device =
      std::ranges::any_of(driven_, [](const Driven& each) { return each.request->staged != nullptr; });
  BackoffPolicy backoff(true, on_device ? Clock::time_point{} : Clock::time_point::max(),
                        BackoffPolicy::kSpinsBesideThread);
  const auto is_due = [&] { return any_is_over() || has_new_.load(std::memory_order_relaxed); };
  try {
    for (std::uint64_t seen = engine_.moves();;) {
      engine_.advance_all();
      if (is_due()) return;
      if (const std::uint64_t moved = engine_.moves(); moved != seen) {
        seen = moved;
        backoff.reset();
        lock.yield();
        continue;
      }
      bool looked;
      const Pause pause = backoff.next(looked);
      if (looked) {
        driven_.front().owner->watch(backoff.now());
        engine_.watch_driven(backoff.now());
        lock.yield();
        if (is_due()) return;
      }
      switch (pause) {
        case Pause::spin: _mm_pause(); break;
        case Pause::yield: engine_.yield(); break;
        case Pause::sleep: engine_.sleep(lock, is_due); break;
      }
    }
  } catch (const std::exception&) {  // nobody foresaw it: no call of this thread goes on
    give_up();
  }
}

void ProgressThread::give_up() {
  for (const Driven& each : driven_)
    if (!each.request->is_over()) each.owner->abandon(*each.request);
}

void ProgressThread::let_go_of_those_over() {
  std::vector<Driven> over;
  {
    const Engine::Lock lock(engine_);
    const auto rest =
        std::ranges::stable_partition(driven_, [](const Driven& each) { return !each.request->is_over(); });
    std::ranges::move(rest, std::back_inserter(over));
    driven_.erase(rest.begin(), rest.end());
  }
  for (Driven& each : over) {
    if (each.tell) each.tell(each.request->error);
    each.tell = {};
    each.request.reset();
    const std::lock_guard lock(mutex_);
    owners_.erase(std::ranges::find(owners_, each.owner));
  }
  news_.notify_all();
}

}  // namespace tutti::internal
