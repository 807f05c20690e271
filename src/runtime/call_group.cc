#include "runtime/call_group.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/group.h"
#include "runtime/grouped_call.h"
#include "runtime/grouped_join.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

// Above these a copy costs more than a call of its own saves. All ranks must find the same: they are part of the
// protocol, as what is fused is.
constexpr std::size_t kFusedAtMost = 8 << 10, kFusedTogether = 64 << 10;

constexpr char kGivenUp[] = "the group of calls was given up before its end, by an exception";
constexpr std::size_t kNone = static_cast<std::size_t>(-1);
constexpr std::uint64_t kDigestFactor = 0x9e3779b97f4a7c15;  // odd: the counts are a polynomial in it
constexpr std::size_t kUsualRun = 128;                       // calls for which a run has room at first

// One side of what a rank sends to itself.
struct SelfSide {
  Group* of;
  CallSpec spec;
  Buffer data;
  Terms terms;
  std::shared_ptr<Request> request;
};

struct Calls {
  std::vector<std::unique_ptr<GroupedJoin>> joins;
  std::vector<GroupedCall> calls;
  std::vector<std::pair<Group*, std::size_t>> last;  // of each communicator: its last call, as an index of `calls`
  std::vector<SelfSide> sends, receives;             // to and from oneself
  std::size_t open = kNone;                          // the run that was last added to, while nothing else was added
  bool is_dropped = false;                           // an exception has ended one of the nested groups
};
thread_local Calls open_calls;

// A started call whose Work is gone: group_end() waits for it, as the Work would have done.
bool is_let_go(const std::shared_ptr<Request>& request) { return request != nullptr && request.use_count() == 1; }

void mark(const std::shared_ptr<Request>& request, Group& group) {
  request->stage = Request::Stage::grouped;
  request->group = group.shared_from_this();
}

void forget(Calls& calls, const Error& error) {
  for (GroupedCall& call : calls.calls) forget(call, error);
  for (const auto* sides : {&calls.sends, &calls.receives})
    for (const SelfSide& side : *sides) forget(side.request, error);
}

// 0 is the communicator's.
std::chrono::milliseconds longer(std::chrono::milliseconds a, std::chrono::milliseconds b) {
  return a.count() == 0 || b.count() == 0 ? std::chrono::milliseconds(0) : std::max(a, b);
}

// --- what a rank sends to itself ------------------------------------------------------------------------------------

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
  if (send.terms.stream != receive.terms.stream)
    refuse_pair(send, ErrorCode::invalid_argument, "sends to itself and receives from itself on different streams");
  GroupedCall call{.group = &send.of->lane_to_self(),
                   .spec = {.collective = Collective::broadcast,
                            .dtype = send.spec.dtype,
                            .algorithm = Algorithm::automatic,
                            .count = send.spec.count},
                   .in = send.data,
                   .out = receive.data,
                   .terms = receive.terms,
                   .blocks = send.request == nullptr || receive.request == nullptr};
  call.terms.label = 0;
  call.terms.timeout = longer(send.terms.timeout, receive.terms.timeout);
  std::vector<Fused::Part> parts;
  for (SelfSide* side : {&send, &receive}) {
    if (side->request == nullptr) continue;
    call.blocks = call.blocks || is_let_go(side->request);
    parts.push_back({.request = std::move(side->request)});
  }
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

// --- what is fused --------------------------------------------------------------------------------------------------

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
         !terms.scalar && input.memory <= MemoryKind::pinned && output.memory <= MemoryKind::pinned;
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
  run.terms.timeout = longer(run.terms.timeout, terms.timeout);
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
  call.terms.label = Call::label_of_fused(call.digest);
  call.fused = std::make_unique<Fused>(std::move(parts), call.digest);
  call.in = call.fused->data();
  call.out = call.fused->data();
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

void CallGroup::add(std::unique_ptr<GroupedJoin> join) { open_calls.joins.push_back(std::move(join)); }

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
  if (ended.is_dropped) {
    const Error error(ErrorCode::aborted, kGivenUp);
    forget(ended, error);
    throw Error(error);
  }
  try {
    pair_up(ended);
    for (const GroupedCall& call : ended.calls)
      if (call.run.empty()) call.group->check(call.spec, call.in, call.out, call.terms);
    for (GroupedCall& call : ended.calls) {
      const auto let_go = [](const Fused::Part& part) { return is_let_go(part.request); };
      call.blocks = call.blocks || is_let_go(call.request) || std::ranges::any_of(call.run, let_go);
      close_run(call);
    }
    join_together(ended.joins);
  } catch (const Error& error) {
    forget(ended, error);
    throw;
  } catch (const std::exception& error) {
    forget(ended, Error(ErrorCode::system, error.what()));
    throw;
  }
  std::exception_ptr first;
  begin_all(ended.calls, first);
  wait_for(ended.calls, first);
  if (first != nullptr) std::rethrow_exception(first);
}

void CallGroup::drop() noexcept {
  Calls dropped = std::exchange(open_calls, {});
  forget(dropped, Error(ErrorCode::aborted, kGivenUp));
  open_calls.is_dropped = --open_groups > 0;
}

}  // namespace tutti::internal
