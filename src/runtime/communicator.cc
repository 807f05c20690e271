// The public face: arguments in, internal::Group behind.
#include "tutti/communicator.h"

#include <algorithm>
#include <exception>
#include <future>
#include <limits>
#include <thread>
#include <vector>

#include "control/env.h"
#include "cuda/memory.h"
#include "runtime/any_call.h"
#include "runtime/call_terms.h"
#include "runtime/group.h"
#include "runtime/group_setup.h"
#include "runtime/join_by_appointment.h"
#include "selection/choose_text.h"

namespace tutti {

using internal::CallSpec;
using internal::Group;
using internal::Job;
using internal::terms_of;

namespace {

std::shared_ptr<Group> make_world(std::shared_ptr<Job> job) {
  std::vector<int> members(job->size());
  for (int r = 0; r < job->size(); ++r) members[r] = r;
  const int rank = job->rank();
  return Group::make(std::move(job), internal::kWorldId, internal::Members(std::move(members), rank));
}

}  // namespace

// --- Work, Memory ---------------------------------------------------------------------------------------------------

Work::Work() = default;
Work::Work(std::shared_ptr<internal::Request> request) : request_(std::move(request)) {}
Work::Work(Work&&) noexcept = default;
Work& Work::operator=(Work&& other) noexcept {
  { const Work before = std::move(*this); }  // waits for what was here
  request_ = std::move(other.request_);
  return *this;
}
Work::~Work() {
  if (request_ == nullptr) return;
  if (request_->group->job().engine().is_forked()) {  // what it holds of a device is the parent's
    static_cast<void>(new auto(std::move(request_)));
    return;
  }
  try {
    request_->group->wait_untold(*request_);
  } catch (const std::exception&) {
    // The communicator keeps the failure; the next call on it throws it.
  }
}
bool Work::test() { return request_ == nullptr || request_->group->test(*request_); }
void Work::wait() {
  if (request_ != nullptr) request_->group->wait(*request_);
}
bool Work::wait_for(std::chrono::milliseconds limit) {
  const auto until = internal::BackoffPolicy::Clock::now() +
                     std::clamp<std::chrono::milliseconds>(limit, std::chrono::milliseconds(0), internal::kLongestWait);
  return request_ == nullptr || request_->group->wait(*request_, until);
}
void Work::set_timeout(std::chrono::milliseconds timeout) {
  timeout = internal::checked_timeout("Work::set_timeout: the timeout", timeout);
  if (request_ != nullptr) request_->group->set_timeout(*request_, timeout);
}
void Work::on_complete(std::function<void(const std::optional<Error>&)> tell) {
  if (request_ != nullptr) return request_->group->tell_when_over(request_, std::move(tell));
  tell(std::nullopt);
}

Memory::Memory() = default;
Memory::Memory(Memory&&) noexcept = default;
Memory& Memory::operator=(Memory&&) noexcept = default;
Memory::~Memory() = default;

Registration::Registration() = default;
Registration::Registration(Registration&&) noexcept = default;
Registration& Registration::operator=(Registration&&) noexcept = default;
Registration::~Registration() = default;

// --- making and leaving ---------------------------------------------------------------------------------------------

Communicator::Communicator(std::shared_ptr<Group> group) : group_(std::move(group)) {}
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept {
  { const Communicator before = std::move(*this); }  // leaves what was here
  group_ = std::move(other.group_);
  return *this;
}
Communicator::~Communicator() {
  if (group_ != nullptr) group_->drain();
}

void Communicator::finalize() {
  if (group_ == nullptr) return;
  const auto group = std::exchange(group_, nullptr);
  group->drain();
  group->finalize();
}

Communicator Communicator::from_env() { return join(Settings::from_env()); }
Communicator Communicator::join(const Settings& settings) {
  return Communicator(make_world(Job::join(settings, nullptr)));
}
Communicator Communicator::join(const Settings& settings, Store& store) {
  return Communicator(make_world(Job::join(settings, &store)));
}

Communicator internal::JoinByAppointment::join(const Settings& settings, Appointment appointment) {
  return Communicator(make_world(Job::join(settings, nullptr, nullptr, nullptr, std::move(appointment))));
}

void Communicator::run_threads(int ranks, const std::function<void(Communicator&)>& body,
                               const std::string& transport) {
  if (ranks < 1)
    throw Error(ErrorCode::invalid_argument,
                "run_threads: " + std::to_string(ranks) + " ranks; there must be at least one");
  const auto store = make_memory_store();
  const auto rendezvous = std::make_shared<internal::DeviceRendezvous>();
  const auto hub = transport == "inproc" ? std::make_shared<internal::inproc::Hub>() : nullptr;
  std::mutex mutex;
  std::exception_ptr first;
  const auto run = [&](int rank) {
    try {
      Settings settings;
      settings.rank = rank;
      settings.size = ranks;
      settings.transport = hub != nullptr ? "auto" : transport;
      Communicator world(make_world(Job::join(settings, store.get(), hub, rendezvous)));
      try {
        body(world);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (first == nullptr) first = std::current_exception();
        world.abort("a rank's body threw");
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
  };
  std::promise<bool> all_started;
  const std::shared_future<bool> may_run = all_started.get_future().share();
  std::vector<std::thread> threads;
  try {
    for (int rank = 1; rank < ranks; ++rank)
      threads.emplace_back([&run, may_run, rank] {
        if (may_run.get()) run(rank);
      });
  } catch (const std::exception& failure) {  // those that have started are not to wait for the others
    first = std::make_exception_ptr(Error(ErrorCode::system, "run_threads: no thread for rank " +
                                                                 std::to_string(threads.size() + 1) + " of " +
                                                                 std::to_string(ranks) + ": " + failure.what()));
  }
  all_started.set_value(first == nullptr);
  if (first == nullptr) run(0);
  for (std::thread& thread : threads) thread.join();
  if (first != nullptr) std::rethrow_exception(first);
}

int Communicator::rank() const { return group_->rank(); }
int Communicator::size() const { return group_->size(); }

Communicator Communicator::split(int color, int key) { return Communicator(internal::split(*group_, color, key)); }

std::vector<int> Communicator::job_ranks() const { return group_->members().job_ranks(); }

Communicator Communicator::shrink() { return Communicator(internal::shrink(*group_)); }

Communicator Communicator::subgroup(std::span<const int> ranks, const std::string& name) {
  return Communicator(internal::subgroup(*group_, ranks, name));
}

Operator Communicator::make_operator(const std::string& name, CombineFunction function) {
  return internal::make_operator(*group_, name, std::move(function));
}

Registration Communicator::register_memory(void* data, std::size_t bytes) {
  group_->job().engine().refuse_if_forked();
  Registration registration;
  registration.owner_ = group_->job().transports().register_memory(static_cast<std::byte*>(data), bytes);
  return registration;
}

Registration Communicator::adopt(void* data, std::size_t bytes) {
  const auto refuse = [](const std::string& why) { throw Error(ErrorCode::invalid_argument, "adopt: " + why); };
  group_->job().engine().refuse_if_forked();
  auto* const first = static_cast<std::byte*>(data);
  if (bytes > 0 && first == nullptr) refuse("there is no memory");
  if (bytes > std::numeric_limits<std::uintptr_t>::max() - reinterpret_cast<std::uintptr_t>(first))
    refuse(std::to_string(bytes) + " bytes are more than the address space has");
  if (bytes > 0 && internal::cuda::location_of(first).kind != MemoryKind::host) refuse("CUDA has pinned the memory");
  Registration registration;
  registration.owner_ = group_->job().transports().adopt(first, bytes);
  return registration;
}

Memory Communicator::allocate(std::size_t bytes) {
  Memory memory;
  memory.owner_ = internal::allocate(*group_, bytes);
  memory.data_ = memory.owner_->data();
  memory.bytes_ = bytes;
  return memory;
}

void Communicator::abort(const std::string& reason) {
  group_->job().engine().refuse_if_forked();
  group_->abort({ErrorCode::aborted, rank(), "rank " + std::to_string(rank()) + " aborted: " + reason});
}

std::optional<Error> Communicator::failure() const {
  if (group_ == nullptr) return std::nullopt;
  group_->job().engine().refuse_if_forked();
  return group_->failure();
}

void Communicator::set_timeout(std::chrono::milliseconds timeout) {
  group_->job().engine().refuse_if_forked();
  group_->set_timeout(internal::checked_timeout("set_timeout: the timeout", timeout));
}

Algorithm Communicator::choose(Collective collective, std::size_t count, DType dtype, Order order) const {
  return group_->choose(collective, count, dtype, order);
}

std::string Communicator::table() const { return internal::to_text(group_->job().table()); }

// --- collectives ----------------------------------------------------------------------------------------------------

namespace {

CallSpec spec(const Group& group, Collective collective, std::size_t count, DType dtype, const Operator& op, int root,
              const CallOptions& options) {
  const bool custom = op.op == Op::custom;
  if (custom && op.communicator != group.serial())
    throw Error(ErrorCode::invalid_argument, std::string(to_string(collective)) +
                                                 ": the custom operator is not one of this communicator's; " +
                                                 "Communicator::make_operator() makes those");
  return {.collective = collective,
          .dtype = dtype,
          .op = op.op,
          .order = options.order,
          .algorithm = options.algorithm,
          .flags = custom ? op.number : std::uint8_t{0},
          .root = root,
          .count = count};
}

}  // namespace

void Communicator::all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                              const CallOptions& options) {
  group_->run(spec(*group_, Collective::all_reduce, count, dtype, op, 0, options), in, out,
              terms_of(options, op.scalar));
}
void Communicator::reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                  const CallOptions& options) {
  group_->run(spec(*group_, Collective::reduce_scatter, count, dtype, op, 0, options), in, out,
              terms_of(options, op.scalar));
}
void Communicator::all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const CallOptions& options) {
  group_->run(spec(*group_, Collective::all_gather, count, dtype, Op::sum, 0, options), in, out, terms_of(options));
}
void Communicator::broadcast(Buffer buffer, std::size_t count, DType dtype, int root, const CallOptions& options) {
  group_->run(spec(*group_, Collective::broadcast, count, dtype, Op::sum, root, options), buffer, buffer,
              terms_of(options));
}
void Communicator::broadcast(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                             const CallOptions& options) {
  group_->run(spec(*group_, Collective::broadcast, count, dtype, Op::sum, root, options), in, out, terms_of(options));
}
void Communicator::reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op, int root,
                          const CallOptions& options) {
  group_->run(spec(*group_, Collective::reduce, count, dtype, op, root, options), in, out,
              terms_of(options, op.scalar));
}
void Communicator::gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                          const CallOptions& options) {
  group_->run(spec(*group_, Collective::gather, count, dtype, Op::sum, root, options), in, out, terms_of(options));
}
void Communicator::scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                           const CallOptions& options) {
  group_->run(spec(*group_, Collective::scatter, count, dtype, Op::sum, root, options), in, out, terms_of(options));
}
void Communicator::scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                        const CallOptions& options) {
  group_->run(spec(*group_, Collective::scan, count, dtype, op, 0, options), in, out, terms_of(options, op.scalar));
}
void Communicator::exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                  const CallOptions& options) {
  group_->run(spec(*group_, Collective::exclusive_scan, count, dtype, op, 0, options), in, out,
              terms_of(options, op.scalar));
}
void Communicator::all_to_all(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const CallOptions& options) {
  group_->run(spec(*group_, Collective::all_to_all, count, dtype, Op::sum, 0, options), in, out, terms_of(options));
}
void Communicator::barrier(const CallOptions& options) {
  group_->run(spec(*group_, Collective::barrier, 0, DType::uint8, Op::sum, 0, options), nullptr, nullptr,
              terms_of(options));
}

Work Communicator::start_all_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                    const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::all_reduce, count, dtype, op, 0, options), in, out,
                            terms_of(options, op.scalar)));
}
Work Communicator::start_reduce_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                        const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::reduce_scatter, count, dtype, op, 0, options), in, out,
                            terms_of(options, op.scalar)));
}
Work Communicator::start_all_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                                    const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::all_gather, count, dtype, Op::sum, 0, options), in, out,
                            terms_of(options)));
}
Work Communicator::start_broadcast(Buffer buffer, std::size_t count, DType dtype, int root,
                                   const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::broadcast, count, dtype, Op::sum, root, options), buffer, buffer,
                            terms_of(options)));
}
Work Communicator::start_broadcast(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                                   const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::broadcast, count, dtype, Op::sum, root, options), in, out,
                            terms_of(options)));
}
Work Communicator::start_reduce(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                int root, const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::reduce, count, dtype, op, root, options), in, out,
                            terms_of(options, op.scalar)));
}
Work Communicator::start_gather(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                                const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::gather, count, dtype, Op::sum, root, options), in, out,
                            terms_of(options)));
}
Work Communicator::start_scatter(ConstBuffer in, Buffer out, std::size_t count, DType dtype, int root,
                                 const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::scatter, count, dtype, Op::sum, root, options), in, out,
                            terms_of(options)));
}
Work Communicator::start_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                              const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::scan, count, dtype, op, 0, options), in, out,
                            terms_of(options, op.scalar)));
}
Work Communicator::start_exclusive_scan(ConstBuffer in, Buffer out, std::size_t count, DType dtype, const Operator& op,
                                        const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::exclusive_scan, count, dtype, op, 0, options), in, out,
                            terms_of(options, op.scalar)));
}
Work Communicator::start_all_to_all(ConstBuffer in, Buffer out, std::size_t count, DType dtype,
                                    const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::all_to_all, count, dtype, Op::sum, 0, options), in, out,
                            terms_of(options)));
}
Work Communicator::start_barrier(const CallOptions& options) {
  return Work(group_->start(spec(*group_, Collective::barrier, 0, DType::uint8, Op::sum, 0, options), nullptr, nullptr,
                            terms_of(options)));
}

void internal::AnyCall::run(Communicator& world, const CallSpec& spec, ConstBuffer in, Buffer out, void* stream,
                            const std::optional<Scalar>& scalar) {
  world.group_->run(spec, in, out, {.stream = stream, .scalar = scalar});
}
Work internal::AnyCall::start(Communicator& world, const CallSpec& spec, ConstBuffer in, Buffer out, void* stream,
                              const std::optional<Scalar>& scalar) {
  return Work(world.group_->start(spec, in, out, {.stream = stream, .scalar = scalar}));
}

}  // namespace tutti
