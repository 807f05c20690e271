// A group's calls: checked, given a plan and a way for what lies on devices, made, and waited for.
#include <algorithm>

#include "cuda/device.h"
#include "runtime/group.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

std::uintptr_t address_of(ConstBuffer buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data); }
std::uintptr_t address_of(Buffer buffer) { return reinterpret_cast<std::uintptr_t>(buffer.data); }

// What a rank does not hold (types/collective.h) may be anything.
void check_closely(const Plan& plan, std::uintptr_t in, std::uintptr_t out, bool overlap) {
  const auto refuse = [&](const std::string& why) {
    throw Error(ErrorCode::invalid_argument, std::string(to_string(plan.call.collective)) + ": " + why);
  };
  const bool reads = plan.input_bytes > 0, writes = plan.output_bytes > 0;
  const std::string_view null = reads && in == 0 ? "input" : writes && out == 0 ? "output" : "";
  if (!null.empty())
    refuse(std::string(null) + " is null though this rank has one and count is " + std::to_string(plan.call.count));
  if (((reads ? in : 0) | (writes ? out : 0)) % size_of(plan.call.dtype) != 0)
    refuse("a buffer is not aligned to its element type");
  if (reads && writes && overlap) refuse("input and output overlap without being in place");
}

void check_buffers(const Plan& plan, ConstBuffer input, Buffer output) {
  const std::uintptr_t in = address_of(input), out = address_of(output);
  if (!plan.has_bytes()) return;
  const bool apart = in >= out + plan.output_bytes || out >= in + plan.input_bytes;
  const bool in_place = out - in == static_cast<std::uintptr_t>(plan.in_place);
  const bool overlap = !(apart || in_place);
  if (in == 0 || out == 0 || ((in | out) & (plan.alignment - 1)) != 0 || overlap) check_closely(plan, in, out, overlap);
}

// Also what is no kind at all, so that look_at_devices() refuses it.
bool is_of_device(MemoryKind kind) { return kind >= MemoryKind::device; }

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

const Plan& Group::plan_for(const CallSpec& spec, bool packed) {
  if (plans_.is_full() && !is_busy()) {
    plans_.clear();
    ready_plan_ = nullptr;
  }
  return plans_.plan_for(spec, packed);
}

inline void Group::admit(Request& request, const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
                         void* stream, Engine::Lock& lock) {
  const bool packed = sides.staged();
  const Plan* const last = plans_.last_plan_for(spec, packed);
  const Plan& plan = last != nullptr ? *last : plan_for(spec, packed);
  check_buffers(plan, input, output);
  if (!failure_.is_well()) refuse();
  request.plan = &plan;
  request.input = static_cast<const std::byte*>(input.data);
  request.output = static_cast<std::byte*>(output.data);
  if (packed || stream != nullptr) stage(request, sides, stream, lock);
  request.sequence = ledger_.number_next();
}

// Releases the engine for CUDA: its calls may wait for a stream, and the thread that lets that stream go on may need
// the engine.
void Group::stage(Request& request, const Sides& sides, void* stream, Engine::Lock& lock) {
  const Plan& plan = *request.plan;
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
  Staging& staging = *staging_;
  const Engine::Lock::ScopedUnlock unlocked(lock);
  request.staged = std::make_unique<StagedCall>(staging, plan, sides.in, sides.out, on);
}

// Where that fails the call is given up as others are: some of it is on the device.
void Group::enqueue_staged(Request& request, Engine::Lock& lock) {
  const Engine::Lock::ScopedUnlock unlocked(lock);
  try {
    request.staged->enqueue();
    return;
  } catch (const Error& error) {
    abort({error.code, -1, error.what()});
  } catch (const std::exception& error) {
    abort({ErrorCode::system, -1, members_.own_name() + ": " + error.what()});
  }
  request.refused = true;
}

// In the usual case there is nothing about devices to find out.
inline Group::Sides Group::look_at(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const {
  if (!job_->sees_gpus() && stream == nullptr && !is_of_device(input.memory) && !is_of_device(output.memory)) return {};
  return look_at_devices(spec, input, output, stream);
}

Group::Sides Group::look_at_devices(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) const {
  job_->engine().refuse_if_forked();  // before the driver is asked, which does not work in a child
  const std::string what(to_string(spec.collective));
  const Distribution holds(spec.collective, size(), spec.root);
  const RowRange in = holds.input(rank()), out = holds.output(rank());
  // A buffer that this rank does not hold may be anything: nobody asks what it is.
  if (in.count == 0 && out.count > 0) input = output;
  if (out.count == 0 && in.count > 0) output = Buffer(const_cast<void*>(input.data), input.memory, input.device);
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
  if (spec.count == 0 || input.data == nullptr || output.data == nullptr) return {};
  const bool is_one = input.data == output.data && input.memory == output.memory && input.device == output.device;
  const Side side = side_of(input);
  Sides sides{side, is_one ? side : side_of(output)};
  sides.in.moves = in.count > 0;
  // In place, what is only moved may be where it is wanted already.
  const auto shift =
      static_cast<std::ptrdiff_t>(out.first - in.first) * static_cast<std::ptrdiff_t>(spec.count * size_of(spec.dtype));
  const bool in_place = address_of(output) - address_of(input) == static_cast<std::uintptr_t>(shift);
  const bool is_there = !holds.traits.combines() && in_place && in.holds(out.first) && out.count <= in.count;
  sides.out.moves = out.count > 0 && !is_there;
  return sides;
}

void Group::run(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) {
  const Sides sides = look_at(spec, input, output, stream);
  if (goes_ahead(sides, stream)) {
    const auto request = start(spec, sides, input, output, stream);
    if (stream == nullptr) return wait(*request);
    if (request->refused) tell(*request->error);
    return;
  }
  Request request;
  Engine::Lock lock(job_->engine());
  admit(request, spec, sides, input, output, stream, lock);
  if (current_ == nullptr && queue_.empty()) {
    current_ = &request;
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

std::shared_ptr<Request> Group::start(const CallSpec& spec, ConstBuffer input, Buffer output, void* stream) {
  return start(spec, look_at(spec, input, output, stream), input, output, stream);
}

std::shared_ptr<Request> Group::start(const CallSpec& spec, const Sides& sides, ConstBuffer input, Buffer output,
                                      void* stream) {
  auto request = std::make_shared<Request>();
  Engine::Lock lock(job_->engine());
  // What is on the device waits there for the host. So another thread must drive it, whatever holds up the caller: even
  // enqueueing the rest of the call.
  const bool ahead = goes_ahead(sides, stream);
  ProgressThread* const progress = ahead ? &job_->progress_thread() : nullptr;
  admit(*request, spec, sides, input, output, stream, lock);
  request->group = shared_from_this();
  try {
    if (ahead) request->staged->go_ahead();
    queue_.push_back(request.get());
    if (ahead) {
      was_driven_ = request->driven = true;
      ++driven_;
      progress->drive(this, [this, request] { wait_untold(*request); });
      enqueue_staged(*request, lock);
    }
    const FloatEnvironment environment;
    advance();
    if (!request->refused && (ahead || stream == nullptr)) return request;
    drive(*request, lock);
    // CUDA has refused a part of the call, so its caller gets an error, even if the rest ended well.
    if (request->refused && !request->error) request->error = error_for(request.get());
  } catch (...) {
    abandon(*request);
    throw;
  }
  if (!request->error) order_after(*request);
  return request;
}

void Group::drain() {
  if (was_driven_ && !job_->engine().is_forked()) job_->progress_thread().drain(this);
}

bool Group::test(Request& request) {
  Engine::Lock lock(job_->engine());
  if (!request.is_over()) {
    const FloatEnvironment environment;
    job_->engine().advance_all();
    if (!request.is_over()) watch(BackoffPolicy::Clock::now());
    if (has_failed()) advance();  // the request hears of it
  }
  if (request.error) tell(*request.error);
  return request.is_over();
}

void Group::wait(Request& request) {
  Engine::Lock lock(job_->engine());
  finish(request, lock);
  if (request.error) tell(*request.error);
}

void Group::wait_untold(Request& request) {
  Engine::Lock lock(job_->engine());
  finish(request, lock);
  if (request.error) failure_.note_unheard();
}

void Group::finish(Request& request, Engine::Lock& lock) {
  try {
    if (!request.is_over()) drive(request, lock);
  } catch (...) {
    if (!request.is_over()) abandon(request);
    throw;
  }
}

}  // namespace tutti::internal
