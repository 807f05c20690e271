// A group's calls: checked, given a plan and a way for what lies on devices, made, and waited for.
#include <algorithm>

#include "cuda/device.h"
#include "reduce/scale.h"
#include "runtime/call_group.h"
#include "runtime/group.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

std::uintptr_t address_of(ConstBuffer buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data); }
std::uintptr_t address_of(Buffer buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data); }

// What a rank does not hold (types/collective.h) may be anything. True where the call wants the plan that exchanges
// rows in place.
[[gnu::noinline]] bool check_closely(const Plan& plan, std::uintptr_t in, std::uintptr_t out, bool overlap) {
  if (!plan.has_bytes()) return false;
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, std::string(to_string(plan.call.collective)) + ": " + why);
  };
  const bool reads = plan.input_bytes > 0, writes = plan.output_bytes > 0;
  const std::string_view null = reads && in == 0 ? "input" : writes && out == 0 ? "output" : "";
  if (!null.empty())
    refuse(std::string(null) + " is null though this rank has one and count is " + std::to_string(plan.call.count));
  if (((reads ? in : 0) | (writes ? out : 0)) % size_of(plan.call.dtype) != 0)
    refuse("a buffer is not aligned to its element type");
  if (overlap && in == out && plan.in_place == kNotInPlace) return true;
  if (reads && writes && overlap) refuse("input and output overlap without being in place");
  return false;
}

inline bool check_buffers(const Plan& plan, ConstBuffer input, Buffer output) {
  const std::uintptr_t in = address_of(input), out = address_of(output);
  const bool apart = in >= out + plan.output_bytes || out >= in + plan.input_bytes;
  const bool in_place = out - in == static_cast<std::uintptr_t>(plan.in_place);
  const bool is_aligned = ((in | out) & (plan.alignment - 1)) == 0;
  if ((in_place || apart) && is_aligned && in != 0 && out != 0) return false;
  return check_closely(plan, in, out, !(apart || in_place));
}

void check_exchange_in_place(const CallSpec& spec) {
  if (spec.rows != nullptr && spec.rows->input != spec.rows->output)
    throw Error(ErrorCode::invalid_argument,
                std::string(to_string(spec.collective)) +
                    "_v: in place, the rows of input and output have the same lengths and the same places");
}

// Asks the driver for what the caller does not say of its buffers.
Side side_of(ConstBuffer buffer) {
  Side side{.data = static_cast<std::byte*>(const_cast<void*>(buffer.data)), .device = buffer.device};
  MemoryKind kind = buffer.memory;
  if (kind == MemoryKind::automatic || (is_of_device(kind) && buffer.device < 0)) {
    const cuda::Location location = cuda::location_of(buffer.data);
    kind = location.kind;
    side.device = location.device;
  }
  side.staged = is_of_device(kind);
  return side;
}

}  // namespace

namespace {

void check_scalar(const Call& call, const std::optional<Scalar>& scalar) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, std::string(to_string(call.collective)) + ": " + why);
  };
  if (call.op != Op::premul_sum)
    refuse("the operator " + std::string(to_string(call.op)) + " takes no scalar; premul_sum does");
  if (!scalar) refuse("premul_sum needs this rank's scalar: tutti::premul_sum(scalar) makes such an operator");
  if (!can_scale(call.dtype, *scalar))
    refuse("the scalar of premul_sum is of type " + std::string(to_string(scalar->dtype)) + ", the elements of " +
           std::string(to_string(call.dtype)));
}

}  // namespace

const Plan& Group::plan_for(const CallSpec& spec, PlanCache::Buffers buffers) {
  if (plans_.is_full() && !is_busy()) {
    plans_.clear();
    ready_plan_ = nullptr;
    forget_at_once();
  }
  return plans_.plan_for(spec, buffers);
}

Operator Group::add_custom(CustomOperator custom) {
  const Engine::Lock lock(job_->engine());
  Operator made(Op::custom);
  made.communicator = serial_;
  made.number = static_cast<std::uint8_t>(PlanCache::kFirstCustom + plans_.customs());
  plans_.add(std::move(custom));
  return made;
}

inline void Group::admit(Request& request, const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
                         const Terms& terms, Engine::Lock& lock) {
  const bool packed = sides.staged();
  const auto buffers = packed ? PlanCache::Buffers::packed : PlanCache::Buffers::usual;
  const Plan* const last = plans_.last_plan_for(spec, buffers);
  const Plan& plan = last != nullptr ? *last : plan_for(spec, buffers);
  const bool exchanges_in_place = check_buffers(plan, input, output);
  if (plan.call.op == Op::premul_sum || terms.scalar) check_scalar(plan.call, terms.scalar);
  if (!failure_->is_well()) refuse();
  // From slots nothing is exchanged in place.
  if (exchanges_in_place) check_exchange_in_place(spec);
  request.plan = exchanges_in_place && !packed ? &plan_for(spec, PlanCache::Buffers::in_place) : &plan;
  request.input.data = static_cast<const std::byte*>(input.data);
  request.output = static_cast<std::byte*>(output.data);
  if (request.plan->uncopied != nullptr) request.plan = &plan_for_memory(request);
  request.timeout = terms.timeout;
  request.label = terms.label;
  request.input.scalar = terms.scalar;
  if (packed || terms.stream != nullptr) stage(request, sides, terms.stream, lock);
  request.sequence = ledger_.number_next();
}

// Of a call that copies something once: whether the memory makes it needless.
const Plan& Group::plan_for_memory(const Request& request) const {
  const Plan& plan = *request.plan;
  const bool shares = plan.copied == Copied::input ? job_->transports().shares(request.input.data, plan.input_bytes)
                                                   : job_->transports().shares(request.output, plan.output_bytes);
  const bool is_never_read = job_->transports().shares(nullptr, 1);  // by peers: then all memory counts as shared
  return is_never_read || (shares && !plan.copies_shared) ? *plan.uncopied : plan;
}

// Releases the engine for CUDA: its calls may wait for a stream, and the thread that lets that stream go on may need
// the engine.
void Group::stage(Request& request, const Sides& sides, void* stream, Engine::Lock& lock) {
  const Plan& plan = *request.plan;
  make_room(plan, sides, stream, lock);
  Staging& staging = *staging_;
  const Engine::Lock::ScopedUnlock unlocked(lock);
  request.staged = std::make_unique<StagedCall>(staging, plan, sides.in, sides.out, static_cast<cuda::Stream>(stream));
}

void Group::make_room(const Plan& plan, const Sides& sides, void* stream, Engine::Lock& lock) {
  if (sides.staged() && plan.call.op == Op::custom)
    throw Error(ErrorCode::unsupported, std::string(to_string(plan.call.collective)) +
                                            ": a custom operator combines host memory only, not device memory");
  const auto on = static_cast<cuda::Stream>(stream);
  if (staging_ == nullptr) {
    std::unique_ptr<Staging> made;
    {
      const Engine::Lock::ScopedUnlock unlocked(lock);
      const int device = sides.in.staged ? sides.in.device : sides.out.staged ? sides.out.device : cuda::device_of(on);
      made = std::make_unique<Staging>(device);
    }
    staging_ = std::move(made);
  }
  if (sides.staged() && !staging_->has_room(plan)) {
    finish_all(lock);
    if (has_failed()) refuse();
    const Staging::Wanted wanted = Staging::wanted(plan);
    std::vector<std::shared_ptr<SymmetricMemory>> memory;
    while (memory.size() < wanted.slots) memory.push_back(job_->transports().allocate(wanted.bytes));
    const Engine::Lock::ScopedUnlock unlocked(lock);
    staging_->add_slots(plan, sides.in.staged ? sides.in.device : sides.out.device, std::move(memory));
  }
}

// Where that fails the call is given up as others are: some of it is on the device.
void Group::enqueue_staged(Request& request, Engine::Lock& lock) {
  const Engine::Lock::ScopedUnlock unlocked(lock);
  try {
    request.staged->enqueue();
    return;
  } catch (const Error& error) {
    abort({error.code, rank(), error.what()});
  } catch (const std::exception& error) {
    abort({ErrorCode::system, rank(), members_.own_name() + ": " + error.what()});
  }
  request.refused = true;
}

Group::Sides Group::look_at_devices(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const {
  job_->engine().refuse_if_forked();  // before the driver is asked, which does not work in a child
  const std::string what(to_string(spec.collective));
  const Distribution holds(spec.collective, size(), spec.root);
  const RowRange in = holds.input(rank()), out = holds.output(rank());
  const bool reads = spec.rows != nullptr ? spec.rows->input.extent() > 0 : in.count > 0 && spec.count > 0;
  const bool writes = spec.rows != nullptr ? spec.rows->output.extent() > 0 : out.count > 0 && spec.count > 0;
  // A buffer that this rank does not hold may be anything: nobody asks what it is.
  if (!reads && writes) input = output;
  if (!writes && reads) output = Buffer(const_cast<void*>(input.data), input.memory, input.device);
  for (const MemoryKind kind : {input.memory, output.memory})
    if (kind > MemoryKind::managed)
      throw Error(ErrorCode::invalid_argument,
                  what + ": there is no kind of memory " + std::to_string(static_cast<int>(kind)) + " (tutti/types.h)");
  if (!job_->sees_gpus() && stream == nullptr && !is_of_device(input.memory) && !is_of_device(output.memory)) return {};
  if (!job_->sees_gpus())
    throw Error(ErrorCode::unsupported, what + (stream != nullptr ? " on a stream: " : " of device memory: ") +
                                            cuda::find_devices().why_none());
  if (stream != nullptr && cuda::is_capturing(static_cast<cuda::Stream>(stream)))
    throw Error(ErrorCode::unsupported,
                what + ": its stream is being captured into a graph, where no rank can meet another");
  if ((!reads && !writes) || input.data == nullptr || output.data == nullptr) return {};
  const bool is_one = input.data == output.data && input.memory == output.memory && input.device == output.device;
  const Side side = side_of(input);
  Sides sides{side, is_one ? side : side_of(output)};
  sides.in.moves = reads;
  // In place, what is only moved may be where it is wanted already.
  const auto shift =
      static_cast<std::ptrdiff_t>(out.at - in.at) * static_cast<std::ptrdiff_t>(spec.count * size_of(spec.dtype));
  const bool in_place = address_of(output) - address_of(input) == static_cast<std::uintptr_t>(shift);
  const bool is_there = spec.rows == nullptr && !holds.traits.combines() && !holds.traits.exchanges() && in_place &&
                        in.holds(out.first) && out.count <= in.count;
  sides.out.moves = writes && !is_there;
  return sides;
}

void Group::check(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms) {
  const Sides sides = look_at(spec, input, output, terms.stream);
  Engine::Lock lock(job_->engine());
  const Plan& plan = plan_for(spec, sides.staged() ? PlanCache::Buffers::packed : PlanCache::Buffers::usual);
  if (check_buffers(plan, input, output)) check_exchange_in_place(spec);
  if (plan.call.op == Op::premul_sum || terms.scalar) check_scalar(plan.call, terms.scalar);
  // Now: making room waits for the calls before, and those of a group wait for each other.
  if (sides.staged() && failure_->is_well()) make_room(plan, sides, terms.stream, lock);
}

// group_at_once.cc does the rest.
inline Group::AtOnceEnd Group::run_at_once(const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
                                           const Terms& terms, const Engine::Lock& lock) {
  if (at_once_ == nullptr || ready_plan_ == nullptr ||
      plans_.last_plan_for(spec, PlanCache::Buffers::usual) != ready_plan_ || terms.label != ready_label_ ||
      terms.scalar || terms.stream != nullptr || sides.staged() || !can_go_at_once() ||
      check_buffers(*ready_plan_, input, output))  // nothing else of admit() can refuse such a call
    return AtOnceEnd::not_begun;
  const Tag tag = next_tag();
  if (!at_once_->send(tag, static_cast<const std::byte*>(input.data), static_cast<std::byte*>(output.data)))
    return AtOnceEnd::not_begun;
  return ends_at_once(tag, lock) ? AtOnceEnd::over : AtOnceEnd::sent;
}

void Group::begin(const std::shared_ptr<Request>& request, const CallSpec& spec, ConstBuffer input, Buffer output,
                  const Terms& terms) {
  begin(request, spec, look_at(spec, input, output, terms.stream), input, output, terms);
}

void Group::begin(const std::shared_ptr<Request>& request, const CallSpec& spec, const Sides& sides, ConstBuffer input,
                  Buffer output, const Terms& terms) {
  Engine::Lock lock(job_->engine());
  // What is on the device waits there for the host. So another thread must drive it, whatever holds up the caller: even
  // enqueueing the rest of the call.
  const bool ahead = goes_ahead(sides, terms.stream);
  const bool progresses = terms.stream == nullptr && job_->settings().progress == Progress::thread;
  if (ahead || progresses) job_->make_progress_thread();
  admit(*request, spec, sides, input, output, terms, lock);
  request->stage = Request::Stage::waiting;
  request->group = shared_from_this();
  try {
    if (ahead) request->staged->go_ahead();
    queue_.push_back(request.get());
    if (ahead) {
      give_to_progress_thread(request);
      enqueue_staged(*request, lock);
    }
    const FloatEnvironment environment;
    advance();
    if (progresses && !request->driven && !request->is_over()) give_to_progress_thread(request);
  } catch (...) {
    abandon(*request);
    throw;
  }
}

void Group::run(const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms) {
  if (is_grouping()) return CallGroup::add(*this, spec, input, output, terms, nullptr);
  const Sides sides = look_at(spec, input, output, terms.stream);
  if (goes_ahead(sides, terms.stream)) {
    const auto request = std::make_shared<Request>();
    begin(request, spec, sides, input, output, terms);
    settle(*request, terms);
    if (terms.stream == nullptr) {
      wait(*request);
    } else if (request->refused) {
      tell(*request->error);
    }
    return;
  }
  Engine::Lock lock(job_->engine());
  const AtOnceEnd at_once = run_at_once(spec, sides, input, output, terms, lock);
  if (at_once == AtOnceEnd::over) return;
  Request request;
  request.is_sent = at_once == AtOnceEnd::sent;
  admit(request, spec, sides, input, output, terms, lock);
  if (current_ == nullptr && queue_.empty()) {
    current_ = &request;
    if (request.is_sent) go_on_with_sent();
  } else {
    queue_.push_back(&request);
  }
  try {
    drive(request, lock);
  } catch (...) {
    abandon(request);
    throw;
  }
  if (request.error) tell(*request.error);
  order_after(request);
}

// On the thread that called, whose stream cudaStreamPerThread is.
void Group::order_after(Request& request) {
  if (request.participation != nullptr) request.participation->hold(request.staged->stream());
  request.participation.reset();
}

}  // namespace tutti::internal
