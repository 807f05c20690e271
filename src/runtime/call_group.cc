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

constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::uint64_t kDigestFactor = 0x9e3779b97f4a7c15;  // odd: the counts are a polynomial in it
constexpr std::size_t kUsualRun = 128;                       // calls for which a run has room at first

// A call that is kept, or a run of small all-reduces that follow each other on a communicator.
struct GroupedCall {
  Group* group;
  CallSpec spec;
  ConstBuffer in = nullptr;
  Buffer out = nullptr;
  Terms terms{};
  std::shared_ptr<Request> request{};  // nullptr until it begins, unless it is a started one
  bool blocks = false;                 // group_end() waits for it
  std::vector<Fused::Part> run{};      // of a run: its calls; spec.count is that of all of them
  std::size_t bytes = 0;               // likewise, their elements
  std::size_t element_bytes = 0;       // likewise
  std::uint64_t digest = 0;            // likewise
  std::unique_ptr<CallRows> rows{};    // those of spec
  std::unique_ptr<Fused> fused{};
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
  std::vector<std::pair<Group*, std::size_t>> last;  // of each communicator: its last call, as an index of `calls`
  std::vector<SelfSide> sends, receives;             // to and from oneself
  std::size_t open = kNone;                          // the run that was last added to, while nothing else was added
};
thread_local Calls open_calls;

void mark(const std::shared_ptr<Request>& request, Group& group) {
  request->stage = Request::Stage::grouped;
  request->group = group.shared_from_this();
}

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

void forget(Calls& calls, const Error& error) {
  for (GroupedCall& call : calls.calls) forget(call, error);
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
                   .blocks = send.request == nullptr || receive.request == nullptr};
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

// By nothing that may differ between the ranks of a call.
bool may_be_fused(Group& group, const CallSpec& spec) {
  return spec.collective == Collective::all_reduce && spec.count > 0 && spec.count <= kFusedAtMost &&
         spec.order == Order::canonical && spec.algorithm == Algorithm::automatic && spec.flags == 0 &&
         spec.op != Op::premul_sum && can_combine(spec.dtype, spec.op) &&
         spec.count * size_of(spec.dtype) <= kFusedAtMost && group.size() > 1 && !group.job().has_gpus();
}

// Nothing that Group::check() would refuse. Quicker, and without a plan of its own.
inline bool is_plain(ConstBuffer input, Buffer output, const Terms& terms, std::size_t bytes,
                     std::size_t element_bytes) {
  const auto in = reinterpret_cast<std::uintptr_t>(input.data), out = reinterpret_cast<std::uintptr_t>(output.data);
  const bool overlap = in != out && in < out + bytes && out < in + bytes;
  return in != 0 && out != 0 && ((in | out) & (element_bytes - 1)) == 0 && !overlap && terms.stream == nullptr &&
         input.memory <= MemoryKind::pinned && output.memory <= MemoryKind::pinned;
}
static_assert(MemoryKind::automatic < MemoryKind::pinned && MemoryKind::host < MemoryKind::pinned);

// Where a communicator's last call stands; made where there is none.
std::size_t& last_of(Calls& calls, Group& group) {
  for (auto& [known, last] : calls.last)
    if (known == &group) return last;
  return calls.last.emplace_back(&group, kNone).second;
}

inline void append(GroupedCall& run, std::size_t count, Fused::Part&& part, const Terms& terms) {
  run.spec.count += count;
  run.bytes += part.bytes;
  run.digest = run.digest * kDigestFactor + count;
  run.blocks = run.blocks || part.request == nullptr;
  if (terms.timeout > run.terms.timeout) run.terms.timeout = terms.timeout;
  run.run.push_back(std::move(part));
}

void add_to_run(Calls& calls, Group& group, const CallSpec& spec, Fused::Part part, const Terms& terms) {
  std::size_t& last = last_of(calls, group);
  GroupedCall* run = last == kNone ? nullptr : &calls.calls[last];
  if (run == nullptr || run->run.empty() || run->spec.dtype != spec.dtype || run->spec.op != spec.op ||
      run->bytes + part.bytes > kFusedTogether) {
    last = calls.calls.size();
    run = &calls.calls.emplace_back(
        GroupedCall{.group = &group, .spec = spec, .terms = terms, .element_bytes = size_of(spec.dtype)});
    run->spec.count = 0;
    run->run.reserve(kUsualRun);
  }
  calls.open = last;
  append(*run, spec.count, std::move(part), terms);
}

// As add(), if the call is like the one before it.
bool add_to_open_run(Calls& calls, const Group& group, const CallSpec& spec, ConstBuffer input, Buffer output,
                     const Terms& terms, std::shared_ptr<Request>& request) {
  if (calls.open == kNone) return false;
  GroupedCall& run = calls.calls[calls.open];
  if (run.group != &group || spec.collective != Collective::all_reduce || spec.dtype != run.spec.dtype ||
      spec.op != run.spec.op || spec.order != Order::canonical || spec.algorithm != Algorithm::automatic ||
      spec.flags != 0 || spec.count == 0 || spec.count > kFusedAtMost)
    return false;
  const std::size_t bytes = spec.count * run.element_bytes;
  if (bytes > kFusedAtMost || run.bytes + bytes > kFusedTogether ||
      !is_plain(input, output, terms, bytes, run.element_bytes))
    return false;
  append(run, spec.count,
         {static_cast<const std::byte*>(input.data), static_cast<std::byte*>(output.data), bytes, std::move(request)},
         terms);
  return true;
}

// One call of a run is an ordinary call.
void close_run(GroupedCall& call) {
  if (call.run.empty()) return;
  std::vector<Fused::Part> parts = std::exchange(call.run, {});
  if (parts.size() == 1) {
    call.in = parts.front().in;
    call.out = parts.front().out;
    call.request = parts.front().request;
    return;
  }
  call.digest = mix(call.digest);
  call.spec.flags = kFusedCalls;
  call.terms.label = static_cast<std::uint16_t>(call.digest);
  call.fused = std::make_unique<Fused>(std::move(parts), call.digest);
  call.in = call.fused->data();
  call.out = call.fused->data();
}

// --- the end
// --------------------------------------------------------------------------------------------------------------

void begin(GroupedCall& call) {
  if (call.request == nullptr) call.request = std::make_shared<Request>();
  call.request->fused = std::move(call.fused);
  if (call.request->fused != nullptr)
    call.request->fused->begin(call.request, [](Request& part) { part.stage = Request::Stage::waiting; });
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
  if (spec.flags == kSplit || spec.flags == kAllocate || spec.flags == kMakeOperator)
    throw Error(ErrorCode::invalid_argument,
                "split(), allocate() and make_operator() need an answer from all ranks at once: call them outside a "
                "group of calls");
  if (request != nullptr) mark(request, group);
  Calls& calls = open_calls;
  if (add_to_open_run(calls, group, spec, input, output, terms, request)) return;
  calls.open = kNone;
  if (may_be_fused(group, spec)) {
    const std::size_t element_bytes = size_of(spec.dtype), bytes = spec.count * element_bytes;
    if (is_plain(input, output, terms, bytes, element_bytes))
      return add_to_run(
          calls, group, spec,
          {static_cast<const std::byte*>(input.data), static_cast<std::byte*>(output.data), bytes, std::move(request)},
          terms);
  }
  const bool blocks = request == nullptr;
  last_of(calls, group) = calls.calls.size();
  calls.calls.push_back({.group = &group,
                         .spec = spec,
                         .in = input,
                         .out = output,
                         .terms = terms,
                         .request = std::move(request),
                         .blocks = blocks});
  if (spec.rows == nullptr) return;
  GroupedCall& call = calls.calls.back();
  call.rows = std::make_unique<CallRows>(*spec.rows);
  call.spec.rows = call.rows.get();
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
  if (request != nullptr) mark(request, of);
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
      if (call.run.empty()) call.group->check(call.spec, call.in, call.out, call.terms);
    for (GroupedCall& call : ended.calls) close_run(call);
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
