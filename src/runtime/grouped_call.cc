#include "runtime/grouped_call.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "runtime/group.h"

namespace tutti::internal {
namespace {

void begin(GroupedCall& call) {
  if (call.request == nullptr) call.request = std::make_shared<Request>();
  call.request->fused = std::move(call.fused);
  if (call.request->fused != nullptr)
    call.request->fused->begin(call.request, [&](Request& part) {
      part.stage = Request::Stage::waiting;
      part.group = call.group->shared_from_this();
    });
  call.group->begin(call.request, call.spec, call.in, call.out, call.terms);
}

void note(std::exception_ptr& first) {
  if (first == nullptr) first = std::current_exception();
}

// Whether the call is over. What it threw is noted.
bool has_ended(GroupedCall& call, std::exception_ptr& first) {
  try {
    return call.group->test(*call.request);
  } catch (...) {
    if (call.request->is_over()) note(first);
    return call.request->is_over();
  }
}

// The ranks that this thread drives may be several, with an engine each: while one waits, all must go on.
void wait_by_turns(std::vector<GroupedCall>& calls, std::vector<GroupedCall*> blocking, std::exception_ptr& first) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kYieldFor{2};
  constexpr std::chrono::microseconds kBetweenLooks{50};
  for (auto moved = Clock::now(); !blocking.empty();) {
    for (GroupedCall& call : calls) call.group->look_after();
    if (std::erase_if(blocking, [&](GroupedCall* call) { return has_ended(*call, first); }) > 0) moved = Clock::now();
    if (Clock::now() - moved < kYieldFor) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

}  // namespace

void forget(const std::shared_ptr<Request>& request, const Error& error) {
  if (request == nullptr || request->stage != Request::Stage::grouped) return;
  request->error = error;
  request->stage = Request::Stage::over;
}

void forget(GroupedCall& call, const Error& error) {
  forget(call.request, error);
  for (const Fused::Part& part : call.run) forget(part.request, error);
  if (call.fused != nullptr)
    static_cast<void>(call.fused->deliver(false, [&](Request& part) {
      part.error = error;
      part.stage = Request::Stage::over;
    }));
}

void wait_for(std::vector<GroupedCall>& calls, std::exception_ptr& first) {
  std::vector<GroupedCall*> blocking;
  for (GroupedCall& call : calls)
    if (call.blocks && call.terms.stream == nullptr) blocking.push_back(&call);
  const auto same_engine = [&](const GroupedCall& call) {
    return &call.group->engine() == &calls.front().group->engine();
  };
  if (!std::ranges::all_of(calls, same_engine)) return wait_by_turns(calls, std::move(blocking), first);
  for (GroupedCall* call : blocking) try {
      call->group->wait_among_others(*call->request);
    } catch (...) {
      note(first);
    }
}

void begin_all(std::vector<GroupedCall>& calls, std::exception_ptr& first) {
  std::vector<GroupedCall> begun;
  begun.reserve(calls.size());
  for (GroupedCall& call : calls) try {
      begin(call);
      begun.push_back(std::move(call));
    } catch (const std::exception& error) {
      note(first);
      if (call.request != nullptr && call.request->fused != nullptr) call.fused = std::move(call.request->fused);
      const auto* const ours = dynamic_cast<const Error*>(&error);
      forget(call, ours != nullptr ? *ours : Error(ErrorCode::system, error.what()));
    }
  calls = std::move(begun);
  for (GroupedCall& call : calls) try {
      call.group->settle(*call.request, call.terms);
      if (call.request->refused && call.request->error) throw Error(*call.request->error);
    } catch (...) {
      note(first);
    }
}

}  // namespace tutti::internal
