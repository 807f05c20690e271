#include "runtime/call_group.h"

#include <emmintrin.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/group.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

// Above these a copy costs more than a call of its own saves. All ranks must find the same: they are part of the
// protocol, as what is fused is.
constexpr std::size_t kFusedAtMost = 8 << 10, kFusedTogether = 64 << 10;

struct GroupedCall {
  Group* group;
  CallSpec spec;
  ConstBuffer in;
  Buffer out;
  Terms terms;
  std::shared_ptr<Request> request;  // nullptr until it begins, unless it is a started one
  bool blocks;                       // group_end() waits for it
  std::unique_ptr<Fused> fused;
};

// One side of what a rank sends to itself.
struct SelfSide {
  Group* of;
  CallSpec spec;
  Buffer data;
  Terms terms;
  std::shared_ptr<Request> request;
};

struct Calls {
  std::vector<GroupedCall> calls;
  std::vector<SelfSide> sends, receives;  // to and from oneself
};
thread_local Calls open_calls;

void mark(const std::shared_ptr<Request>& request, Group& group) {
  if (request == nullptr) return;
  request->stage = Request::Stage::grouped;
  request->group = group.shared_from_this();
}

void forget(const std::shared_ptr<Request>& request, const Error& error) {
  if (request == nullptr || request->stage != Request::Stage::grouped) return;
  request->error = error;
  request->stage = Request::Stage::over;
}

void forget(Calls& calls, const Error& error) {
  for (GroupedCall& call : calls.calls) {
    forget(call.request, error);
    if (call.fused != nullptr)
      static_cast<void>(call.fused->deliver(error, [](Request& part) { part.stage = Request::Stage::over; }));
  }
  for (const auto* sides : {&calls.sends, &calls.receives})
    for (const SelfSide& side : *sides) forget(side.request, error);
}

// --- what a rank sends to itself
// ------------------------------------------------------------------------------------------

[[noreturn]] void refuse_pair(const SelfSide& side, ErrorCode code, const std::string& why) {
  throw Error(code, side.of->members().own_name() + " " + why, side.of->rank(), side.of->rank());
}

// Becomes a broadcast of the rank alone, which copies on any memory.
GroupedCall paired(SelfSide& send, SelfSide& receive) {
  if (send.spec != receive.spec || send.terms.label != receive.terms.label) {
    const auto words = [](const SelfSide& side) {
      return std::string(to_string(side.spec.dtype)) + " x " + std::to_string(side.spec.count) + ", tag " +
             std::to_string(side.terms.label);
    };
    refuse_pair(send, ErrorCode::mismatch,
                "sends itself " + words(send) + " and receives from itself " + words(receive));
  }
  GroupedCall call{.group = &send.of->lane_to_self(),
                   .spec = {.collective = Collective::broadcast,
                            .dtype = send.spec.dtype,
                            .algorithm = Algorithm::automatic,
                            .count = send.spec.count},
                   .in = send.data,
                   .out = receive.data,
                   .terms = receive.terms.stream != nullptr ? receive.terms : send.terms,
                   .request = nullptr,
                   .blocks = send.request == nullptr || receive.request == nullptr,
                   .fused = nullptr};
  call.terms.label = 0;
  std::vector<Fused::Part> parts;
  for (SelfSide* side : {&send, &receive})
    if (side->request != nullptr) parts.push_back({.request = std::move(side->request)});
  if (!parts.empty()) call.fused = std::make_unique<Fused>(std::move(parts), 0);
  return call;
}

void pair_up(Calls& calls) {
  for (SelfSide& send : calls.sends) {
    const auto receive = std::ranges::find(calls.receives, send.of, &SelfSide::of);
    if (receive == calls.receives.end())
      refuse_pair(send, ErrorCode::invalid_argument, "sends to itself in a group that has no receive for it");
    calls.calls.push_back(paired(send, *receive));
    calls.receives.erase(receive);
  }
  calls.sends.clear();
  if (!calls.receives.empty())
    refuse_pair(calls.receives.front(), ErrorCode::invalid_argument,
                "receives from itself in a group that has no send for it");
}

// --- what is fused
// --------------------------------------------------------------------------------------------------------

std::size_t bytes_of(const GroupedCall& call) { return call.spec.count * size_of(call.spec.dtype); }

// By nothing that may differ between the ranks of a call.
bool may_be_fused(const GroupedCall& call) {
  const CallSpec& spec = call.spec;
  return to_string(spec.dtype) != kNoName && spec.collective == Collective::all_reduce &&
         spec.order == Order::canonical && spec.algorithm == Algorithm::automatic && spec.count > 0 &&
         spec.count <= kFusedAtMost && bytes_of(call) <= kFusedAtMost && call.group->size() > 1 &&
         !call.group->job().has_gpus();
}

// Nothing that check() would refuse. Quicker, and without a plan of its own.
bool is_plain(const GroupedCall& call) {
  const auto in = reinterpret_cast<std::uintptr_t>(call.in.data), out = reinterpret_cast<std::uintptr_t>(call.out.data);
  const std::size_t bytes = bytes_of(call);
  const bool overlap = in != out && in < out + bytes && out < in + bytes;
  return in != 0 && out != 0 && (in | out) % size_of(call.spec.dtype) == 0 && !overlap &&
         call.terms.stream == nullptr && call.in.memory == MemoryKind::automatic &&
         call.out.memory == MemoryKind::automatic;
}

struct Run {  // calls of one communicator, one behind the other
  Group* group;
  DType dtype;
  Op op;
  std::size_t bytes;
  std::vector<std::size_t> calls;
  bool takes(const GroupedCall& call) const {
    return call.spec.dtype == dtype && call.spec.op == op && bytes + bytes_of(call) <= kFusedTogether;
  }
};

GroupedCall fused(std::vector<GroupedCall>& calls, const Run& run) {
  std::vector<Fused::Part> parts;
  parts.reserve(run.calls.size());
  std::uint64_t digest = run.calls.size();
  GroupedCall one{.group = run.group,
                  .spec = calls[run.calls.front()].spec,
                  .in = nullptr,
                  .out = nullptr,
                  .terms = calls[run.calls.front()].terms,
                  .request = nullptr,
                  .blocks = false,
                  .fused = nullptr};
  one.spec.count = 0;
  for (const std::size_t i : run.calls) {
    GroupedCall& call = calls[i];
    digest = mix(digest + call.spec.count);
    one.spec.count += call.spec.count;
    one.blocks = one.blocks || call.blocks;
    one.terms.timeout = std::max(one.terms.timeout, call.terms.timeout);
    parts.push_back({static_cast<const std::byte*>(call.in.data), static_cast<std::byte*>(call.out.data),
                     bytes_of(call), std::move(call.request)});
  }
  one.spec.flags = kFusedCalls;
  one.terms.label = static_cast<std::uint16_t>(digest);
  one.fused = std::make_unique<Fused>(std::move(parts), digest);
  one.in = one.fused->data();
  one.out = one.fused->data();
  return one;
}

// The calls of each communicator stay in their order.
std::vector<GroupedCall> fuse(std::vector<GroupedCall>& calls) {
  std::vector<Run> runs;
  std::vector<std::size_t> run_of(calls.size(), 0);  // from 1; 0: none
  std::vector<std::size_t> open;                     // the last run of each communicator, while it may grow
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const GroupedCall& call = calls[i];
    const auto last = std::ranges::find(open, call.group, [&](std::size_t run) { return runs[run].group; });
    const bool fits = may_be_fused(call);
    if (last != open.end() && fits && runs[*last].takes(call)) {
      runs[*last].bytes += bytes_of(call);
      runs[*last].calls.push_back(i);
      run_of[i] = *last + 1;
      continue;
    }
    if (last != open.end()) open.erase(last);
    if (!fits) continue;
    open.push_back(runs.size());
    runs.push_back({call.group, call.spec.dtype, call.spec.op, bytes_of(call), {i}});
    run_of[i] = runs.size();
  }
  std::vector<GroupedCall> all;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Run* const run = run_of[i] == 0 ? nullptr : &runs[run_of[i] - 1];
    if (run == nullptr || run->calls.size() == 1) {
      all.push_back(std::move(calls[i]));
    } else if (run->calls.front() == i) {
      all.push_back(fused(calls, *run));
    }
  }
  return all;
}

// --- the end
// --------------------------------------------------------------------------------------------------------------

void begin(GroupedCall& call) {
  if (call.request == nullptr) call.request = std::make_shared<Request>();
  call.request->fused = std::move(call.fused);
  if (call.request->fused != nullptr) call.request->fused->begin(call.request);
  call.group->begin(call.request, call.spec, call.in, call.out, call.terms);
}

// The ranks that this thread drives may be several, with an engine each.
void wait_by_turns(const std::vector<GroupedCall*>& calls, std::exception_ptr& first) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kYieldFor{2};
  constexpr std::chrono::microseconds kBetweenLooks{50};
  std::vector<GroupedCall*> rest = calls;
  for (auto moved = Clock::now(); !rest.empty();) {
    const std::size_t erased = std::erase_if(rest, [&](GroupedCall* call) {
      try {
        return call->group->test(*call->request);
      } catch (...) {
        if (first == nullptr) first = std::current_exception();
        return true;
      }
    });
    if (erased > 0) moved = Clock::now();
    if (Clock::now() - moved < kYieldFor) {
      ::sched_yield();
    } else {
      std::this_thread::sleep_for(kBetweenLooks);
    }
  }
}

void wait_for(std::vector<GroupedCall>& calls, std::exception_ptr& first) {
  std::vector<GroupedCall*> blocking;
  for (GroupedCall& call : calls)
    if (call.blocks && call.terms.stream == nullptr && call.request != nullptr) blocking.push_back(&call);
  const bool one_engine = std::ranges::all_of(
      blocking, [&](const GroupedCall* call) { return &call->group->engine() == &blocking.front()->group->engine(); });
  if (!one_engine) return wait_by_turns(blocking, first);
  for (GroupedCall* call : blocking) try {
      call->group->wait_among_others(*call->request);
    } catch (...) {
      if (first == nullptr) first = std::current_exception();
    }
}

// Those behind the first that cannot begin do not begin either.
std::exception_ptr begin_all(std::vector<GroupedCall>& calls) {
  std::size_t begun = 0;
  try {
    for (; begun < calls.size(); ++begun) begin(calls[begun]);
    for (GroupedCall& call : calls) call.group->settle(*call.request, call.terms);
    return nullptr;
  } catch (const Error& error) {
    Calls rest;
    for (std::size_t i = begun; i < calls.size(); ++i) rest.calls.push_back(std::move(calls[i]));
    calls.erase(calls.begin() + static_cast<std::ptrdiff_t>(begun), calls.end());
    for (GroupedCall& call : rest.calls)
      if (call.request != nullptr && call.request->fused != nullptr) call.fused = std::move(call.request->fused);
    forget(rest, error);
    return std::current_exception();
  }
}

}  // namespace

void CallGroup::add(Group& group, const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms,
                    std::shared_ptr<Request> request) {
  if (spec.flags != 0)
    throw Error(ErrorCode::invalid_argument,
                "split() and allocate() need an answer from all ranks at once: call them outside a group of calls");
  mark(request, group);
  const bool blocks = request == nullptr;
  open_calls.calls.push_back({&group, spec, input, output, terms, std::move(request), blocks, nullptr});
}

void CallGroup::send_to_self(Group& of, const CallSpec& spec, ConstBuffer data, const Terms& terms,
                             std::shared_ptr<Request> request) {
  receive_from_self(of, spec, Buffer(const_cast<void*>(data.data), data.memory, data.device), terms,
                    std::move(request));
  open_calls.sends.push_back(std::move(open_calls.receives.back()));
  open_calls.receives.pop_back();
}

void CallGroup::receive_from_self(Group& of, const CallSpec& spec, Buffer data, const Terms& terms,
                                  std::shared_ptr<Request> request) {
  if (!is_grouping())
    throw Error(ErrorCode::unsupported,
                of.members().own_name() +
                    " can send to itself, and receive from itself, only if both calls are in "
                    "one group (tutti::group_start): else one would wait for the other",
                of.rank(), of.rank());
  mark(request, of);
  open_calls.receives.push_back({&of, spec, data, terms, std::move(request)});
}

void CallGroup::end() {
  if (open_groups == 0)
    throw Error(ErrorCode::invalid_argument, "group_end() without a group_start() of the same thread");
  if (--open_groups > 0) return;
  Calls ended = std::exchange(open_calls, {});
  try {
    pair_up(ended);
    for (const GroupedCall& call : ended.calls)
      if (!may_be_fused(call) || !is_plain(call)) call.group->check(call.spec, call.in, call.out, call.terms);
    ended.calls = fuse(ended.calls);
  } catch (const Error& error) {
    forget(ended, error);
    throw;
  }
  std::exception_ptr first = begin_all(ended.calls);
  wait_for(ended.calls, first);
  if (first != nullptr) std::rethrow_exception(first);
}

void CallGroup::drop() noexcept {
  open_groups = 0;
  Calls dropped = std::exchange(open_calls, {});
  forget(dropped, Error(ErrorCode::aborted, "the group of calls was given up before its end"));
}

}  // namespace tutti::internal
