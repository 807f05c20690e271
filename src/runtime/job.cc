#include "runtime/job.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "control/env.h"
#include "control/join.h"
#include "control/validate.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "executor/plan.h"
#include "memory/between_cores.h"
#include "selection/choose_text.h"
#include "topology/machine.h"
#include "topology/processors.h"
#include "transport/inproc/connector.h"
#include "transport/shm/guarded_write.h"

namespace tutti::internal {
namespace {

// Rank 0's table, in the form that has no comments; or what is wrong with it, which all are to hear.
Announcement table_to_announce(const Settings& settings) {
  if (settings.rank != 0 || settings.table.empty()) return {};
  try {
    return {to_text(parse_table(read_table_file(settings.table), settings.table)), ""};
  } catch (const Error& error) {
    return {"", std::string(error.what()) + " (TUTTI_TABLE of rank 0)"};
  }
}

// Where some ranks of this host must share a processor, all of them give way to each other when they wait.
bool must_share(const std::vector<Member>& members, int own) {
  std::vector<topology::Processors> places;  // of the ranks of this host
  for (const Member& member : members)
    if (member.host_id == members[own].host_id) places.push_back(topology::from_bits(member.processors));
  return topology::must_share(places);
}

}  // namespace

// --- joining --------------------------------------------------------------------------------------------------------

Job::Job(const Settings& settings, std::shared_ptr<inproc::Hub> hub, std::shared_ptr<DeviceRendezvous> rendezvous)
    : settings_(within_clocks(settings)),
      has_timeout_of_env_(is_timeout_of_env(settings.timeout)),
      is_threads_(rendezvous != nullptr),
      goes_ahead_(!is_threads_ && settings.size > 1 && !cuda::launches_block()),
      rendezvous_(is_threads_ ? std::move(rendezvous) : std::make_shared<DeviceRendezvous>()),
      engine_(settings_.rank),
      transports_(settings_, log_, engine_.sleeper(),
                  hub == nullptr ? nullptr : inproc::make_connector(std::move(hub), engine_.sleeper())),
      notices_(settings_.size, log_),
      recorder_(settings_, log_) {}

std::shared_ptr<Job> Job::join(const Settings& settings, Store* store, std::shared_ptr<inproc::Hub> hub,
                               std::shared_ptr<DeviceRendezvous> rendezvous, std::optional<Appointment> appointment) {
  const StoreJoin number = store != nullptr ? count_join(*store, settings.rank) : StoreJoin{};
  validate(settings);
  std::shared_ptr<Job> job(new Job(settings, std::move(hub), std::move(rendezvous)));
  Announcement announcement = table_to_announce(settings);
  announcement.obstacles = job->transports_.probe();
  announcement.sees_gpus = job->sees_gpus_ = cuda::is_possible();
  job->control_ = join_job(job->settings_, store, number, std::move(announcement), std::move(appointment));
  const auto told = [&](const char* why) {  // the others may have joined already
    Error error = join_error(ErrorCode::system, settings.rank, settings.rank, why);
    job->control_->poison(kWorldId, error.code, settings.rank, error.what());
    return error;
  };
  try {
    job->enter();
  } catch (const Error& error) {
    if (error.code != ErrorCode::system || error.peer >= 0) throw;  // all ranks find the same
    throw told(error.what());
  } catch (const std::exception& error) {
    throw told(error.what());
  }
  ProcessJobs::here().add(job);
  return job;
}

// All ranks have joined.
void Job::enter() {
  const std::string& announced = control_->announced();
  is_own_table_ = !announced.empty();
  table_ = announced.empty() ? ChoiceTable::built_in() : parse_table(announced, "the table of rank 0");
  const std::size_t cache_bytes = topology::largest_cache_bytes(topology::allowed_processors().front());
  if (cache_bytes > 0) host_.cache_bytes = std::min(cache_bytes, kMostCacheBytes);
  const std::vector<Member>& members = control_->members();
  has_gpus_ = std::ranges::any_of(members, &Member::sees_gpus);
  host_.crowded = must_share(members, rank());
  host_.cores = between_cores();
  if (!host_.cores.past_cache_pays) host_.cache_bytes = kNever;
  if (!shm::can_write_guarded()) host_.cores.split_from = kNever;
  if (host_.crowded) engine_.set_crowded();
  transports_.begin(members, host_.crowded);
  engine_.use(transports_.used(), transports_.wakes_sleepers());
  log_decisions();
  control_->on_connection([this](int peer, Path path, std::uint64_t communicator, int fd, const Error* error) {
    transports_.on_connection(peer, path, communicator, fd, error);
    engine_.ring();
  });
  recorder_.begin(control_->serve_status({.report = [this](bool with_calls) { return recorder_.report(with_calls); },
                                          .dump = [this] { recorder_.dump(); }}));
  control_->on_notice([this](const Notice& notice) {
    notices_.heard(notice);
    engine_.ring();
  });
}

// What joining has decided, and why.
void Job::log_decisions() const {
  log_.info([&] { return "is one of " + std::to_string(size()) + " ranks; " + transports_.describe(); });
  log_.info([&] {
    return std::string(engine_.crowding().is_crowded()
                           ? "gives way while it waits: the ranks of this host share processors"
                           : "spins while it waits: each rank of this host has a processor");
  });
  log_.info([&] {
    return "chooses algorithms by " + (is_own_table_ ? std::string("the table of rank 0") : "the built-in table");
  });
}

// --- leaving, and forking -------------------------------------------------------------------------------------------

Job::~Job() {
  ProgressThread::end(std::move(progress_thread_));
  control_.reset();
}

// Calls that are under way are given a moment to end. Nobody hears of a later end, nor of the peers': so calls that are
// made or waited for in what is left of the process fail at once.
void Job::leave() {
  engine_.stop([](JobMember& member) { member.leave_at_exit(); });
  recorder_.close();
  control_->leave();
  notices_.fail_all_at_exit();
}

void Job::after_fork_in_child() {
  engine_.set_forked();
  notices_.after_fork_in_child();
}

// --- for its communicators ------------------------------------------------------------------------------------------

void Job::add(JobMember& member) {
  engine_.add(member);
  notices_.add(member);
}

void Job::remove(JobMember& member) {
  engine_.remove(member);
  notices_.remove(member);
}

void Job::make_progress_thread() try {
  if (progress_thread_ == nullptr) progress_thread_ = std::make_unique<ProgressThread>(engine_);
} catch (const std::system_error& error) {
  throw Error(ErrorCode::system, std::string("no thread for the calls of this rank: ") + error.what());
}

}  // namespace tutti::internal
