#include "work.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "ending.h"
#include "unlocked.h"

namespace tutti_python {
namespace {

using Clock = std::chrono::steady_clock;

// How long a thread waits before it looks for signals, as of Ctrl-C.
constexpr std::int64_t kSliceMs = 10;

struct Abandoned {
  tutti_work_t handle;
  py::object keep;
  std::shared_ptr<std::atomic<bool>> group_is_open;
};
// With the interpreter's lock. It lives for ever: a work may be let go of while Python ends.
std::vector<Abandoned>& abandoned_works() {
  static auto* const all = new std::vector<Abandoned>;
  return *all;
}

// Of this thread's group of calls, if one is open.
struct OpenGroup {
  int depth = 0;
  std::shared_ptr<std::atomic<bool>> is_open;
};
thread_local OpenGroup open_group;

bool is_open(const std::shared_ptr<std::atomic<bool>>& group) { return group != nullptr && *group; }

void tell_nobody(void* /*user*/, tutti_result_t /*result*/, tutti_error_code_t /*code*/, const char* /*text*/) {}

struct Listener {
  py::function tell;
};

void tell_listener(void* user, tutti_result_t result, tutti_error_code_t code, const char* text) {
  const MayCallPython may;
  if (!may) return;
  const py::gil_scoped_acquire lock;
  is_library_thread = true;
  std::unique_ptr<Listener> listener(static_cast<Listener*>(user));
  try {
    listener->tell(result == TUTTI_SUCCESS ? py::none() : to_exception({static_cast<int>(code), -1, text}));
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("a function that was told of a call's end");
  }
}

}  // namespace

py::object to_exception(const Failure& failure) {
  return py::module_::import("tutti._error").attr("Error")(failure.text, failure.code, failure.peer);
}

Work::Work(tutti_work_t handle, py::object keep)
    : handle_(handle), keep_(std::move(keep)), group_is_open_(open_group.is_open) {}

Work::~Work() {
  if (handle_ == nullptr) return;
  if (!is_library_thread && !is_open(group_is_open_)) {
    const Unlocked unlocked;
    if (look(0)) return;
  }
  abandon();
}

void Work::refuse_in_group() const {
  if (is_open(group_is_open_))
    throw FailureError({TUTTI_ERROR_INVALID_ARGUMENT, -1,
                        "a call of a group is asked after before the group has ended: it begins at the group's end"});
}

bool Work::look(std::int64_t milliseconds) {
  refuse_in_group();
  std::unique_lock lock(mutex_, std::defer_lock);
  if (milliseconds > 0)
    lock.lock();
  else if (!lock.try_lock())
    return false;  // another thread waits for it
  if (handle_ == nullptr) return true;
  if (later_timeout_ms_ > 0) tutti_work_set_timeout(handle_, std::exchange(later_timeout_ms_, 0));
  int done = 0;
  const tutti_result_t result = tutti_work_wait_for(handle_, milliseconds, &done);
  if (done == 0 && result == TUTTI_SUCCESS) return false;  // a call that has failed is over, and says so by its result
  if (result != TUTTI_SUCCESS) failure_ = last_failure();
  tutti_work_free(std::exchange(handle_, nullptr));
  return true;
}

bool Work::wait(double seconds) {
  std::optional<Clock::time_point> until;
  if (seconds >= 0)
    until = Clock::now() +
            std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
  while (true) {
    std::int64_t slice = kSliceMs;
    if (until) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(*until - Clock::now()).count();
      slice = std::clamp<std::int64_t>(left, 0, kSliceMs);
    }
    bool over = false;
    {
      const Unlocked unlocked;
      over = look(slice);
    }
    if (over) break;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (until && Clock::now() >= *until) return false;
  }
  keep_ = py::none();
  if (failure_) throw FailureError(*failure_);
  return true;
}

bool Work::is_over() { return wait_shortly(0); }

bool Work::wait_shortly(double seconds) {
  bool over = false;
  {
    const Unlocked unlocked;
    const auto until =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    do over = look(0);
    while (!over && Clock::now() < until);
  }
  if (over) keep_ = py::none();
  return over;
}

void Work::set_timeout(std::int64_t milliseconds) {
  if (is_open(group_is_open_)) {
    later_timeout_ms_ = milliseconds;
    return;
  }
  tutti_result_t result = TUTTI_SUCCESS;
  {
    const Unlocked unlocked;
    const std::lock_guard lock(mutex_);
    if (handle_ != nullptr) result = tutti_work_set_timeout(handle_, milliseconds);
  }
  check(result);
}

void Work::advance_by_itself(double patience) {
  if (patience > 0 && wait_shortly(patience)) return;
  tutti_result_t result = TUTTI_SUCCESS;
  {
    const Unlocked unlocked;
    const std::lock_guard lock(mutex_);
    if (handle_ != nullptr) result = tutti_work_on_complete(handle_, tell_nobody, nullptr);
  }
  check(result);
}

void Work::on_complete(py::function tell) {
  auto listener = std::make_unique<Listener>(Listener{std::move(tell)});
  tutti_result_t result = TUTTI_SUCCESS;
  bool over = false;
  {
    const Unlocked unlocked;
    const std::lock_guard lock(mutex_);
    over = handle_ == nullptr;
    if (!over) result = tutti_work_on_complete(handle_, tell_listener, listener.get());
  }
  check(result);
  if (over)
    listener->tell(failure_ ? to_exception(*failure_) : py::none());
  else
    (void)listener.release();  // tell_listener() frees it
}

void Work::abandon() {
  if (!is_library_thread && !is_open(group_is_open_)) {
    const Unlocked unlocked;
    tutti_work_on_complete(handle_, tell_nobody, nullptr);
  }
  abandoned_works().push_back({std::exchange(handle_, nullptr), std::move(keep_), group_is_open_});
}

void Work::free_abandoned() {
  std::vector<Abandoned>& all = abandoned_works();
  if (all.empty() || is_library_thread) return;
  std::vector<Abandoned> these = std::exchange(all, {});  // another thread may come while the lock is given up
  std::vector<Abandoned> left;
  for (Abandoned& work : these) {
    int done = 0;
    if (!is_open(work.group_is_open)) {
      const Unlocked unlocked;
      if (tutti_work_test(work.handle, &done) != TUTTI_SUCCESS) done = 1;  // it has failed
      if (done != 0) tutti_work_free(work.handle);
    }
    if (done == 0) left.push_back(std::move(work));
  }
  all.insert(all.end(), std::make_move_iterator(left.begin()), std::make_move_iterator(left.end()));
}

void Work::start_group() {
  check(tutti_group_start());
  if (++open_group.depth == 1) open_group.is_open = std::make_shared<std::atomic<bool>>(true);
}

void Work::end_group() {
  tutti_result_t result = TUTTI_SUCCESS;
  {
    const Unlocked unlocked;
    result = tutti_group_end();
  }
  if (open_group.depth > 0 && --open_group.depth == 0) *std::exchange(open_group.is_open, nullptr) = false;
  check(result);
}

}  // namespace tutti_python
