// A group's calls that are started: given to the progress thread, asked after and waited for.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/call_group.h"
#include "runtime/group.h"

namespace tutti::internal {
namespace {

void refuse_if_grouped(const Request& request) {
  if (request.stage == Request::Stage::grouped)
    throw Error(ErrorCode::invalid_argument,
                "a call of a group is asked after before the group has ended: call group_end() first");
}

}  // namespace

std::shared_ptr<Request> Group::start(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms) {
  auto request = std::make_shared<Request>();
  if (is_grouping()) {
    CallGroup::add(*this, spec, input, output, terms, request);
    return request;
  }
  begin(request, spec, input, output, terms);
  settle(*request, terms);
  return request;
}

// A call on a stream that nobody drives is driven here.
void Group::settle(Request& request, const Terms& terms) {
  const bool ahead = job_->goes_ahead() && request.staged != nullptr;
  if (!request.refused && (ahead || terms.stream == nullptr)) return;  // the usual case, without the engine's lock
  Engine::Lock lock(job_->engine());
  finish(request, lock);
  // CUDA has refused a part of the call, so its caller gets an error, even if the rest ended well.
  if (request.refused && !request.error) request.error = error_for(&request);
  if (!request.error) order_after(request);
}

void Group::give_to_progress_thread(const std::shared_ptr<Request>& request, ProgressThread::Tell tell) {
  was_driven_ = true;
  if (!request->is_over() && !std::exchange(request->driven, true)) ++driven_;
  job_->progress_thread().drive(*this, request, std::move(tell));
}

void Group::tell_when_over(const std::shared_ptr<Request>& request, ProgressThread::Tell tell) {
  const Engine::Lock lock(job_->engine());
  refuse_if_grouped(*request);
  job_->make_progress_thread();
  give_to_progress_thread(request, std::move(tell));
}

void Group::set_timeout(std::chrono::milliseconds timeout) {
  const Engine::Lock lock(job_->engine());
  timeout_ = timeout;
  for (const auto& [way, lane] : lanes_) lane->timeout_ = timeout;
}

void Group::set_timeout(Request& request, std::chrono::milliseconds timeout) {
  const Engine::Lock lock(job_->engine());
  refuse_if_grouped(request);
  request.timeout = timeout;
  const auto set_where_fused = [&](Request& with) {
    if (with.fused != nullptr && with.fused->does(request)) with.timeout = timeout;
  };
  if (current_ != nullptr) set_where_fused(*current_);
  for (Request* const queued : queue_) set_where_fused(*queued);
}

std::chrono::milliseconds Group::timeout() const {
  const Engine::Lock lock(job_->engine());
  return timeout_;
}

void Group::drain() {
  if (job_->engine().is_forked()) return;
  const auto own = [&] {
    std::vector<std::shared_ptr<Group>> driven = lanes();
    driven.push_back(shared_from_this());
    const Engine::Lock lock(job_->engine());
    std::erase_if(driven, [](const auto& group) { return !group->was_driven_; });
    return driven;
  };
  // What is told of the end of a call may start another one.
  for (auto driven = own(); !driven.empty();) {
    for (const auto& group : driven) job_->progress_thread().drain(*group);
    const auto again = own();
    if (again.size() == driven.size() &&
        std::ranges::none_of(again, [&](const auto& group) { return job_->progress_thread().has_calls_of(*group); }))
      return;
    driven = again;
  }
}

void Group::look_after() {
  const Engine::Lock lock(job_->engine());
  const FloatEnvironment environment;
  job_->engine().advance_all();
  watch(BackoffPolicy::Clock::now());
}

bool Group::test(Request& request) {
  Engine::Lock lock(job_->engine());
  refuse_if_grouped(request);
  if (!request.is_over()) {
    const FloatEnvironment environment;
    job_->engine().advance_all();
    if (!request.is_over()) watch(BackoffPolicy::Clock::now());
    if (!failure_->goes_on()) advance();  // the request hears of it
  }
  if (request.error) tell(*request.error);
  return request.is_over();
}

bool Group::wait(Request& request, BackoffPolicy::Clock::time_point until) {
  Engine::Lock lock(job_->engine());
  refuse_if_grouped(request);
  const bool is_over = finish(request, lock, until);
  if (request.error) tell(*request.error);
  return is_over;
}

void Group::wait_among_others(Request& request) {
  Engine::Lock lock(job_->engine());
  finish(request, lock, BackoffPolicy::Clock::time_point::max(), true);
  if (request.error) tell(*request.error);
}

void Group::wait_untold(Request& request) {
  Engine::Lock lock(job_->engine());
  if (request.stage == Request::Stage::grouped) return;  // group_end() waits for it instead
  finish(request, lock);
  if (request.error) failure_->note_unheard();
}

bool Group::finish(Request& request, Engine::Lock& lock, BackoffPolicy::Clock::time_point until, bool among_others) {
  try {
    return request.is_over() || drive(request, lock, until, among_others);
  } catch (...) {
    if (!request.is_over()) abandon(request);
    throw;
  }
}

}  // namespace tutti::internal
