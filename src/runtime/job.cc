#include "runtime/job.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <system_error>
#include <thread>

#include "control/env.h"
#include "control/join_job.h"
#include "control/validate.h"
#include "cuda/memory.h"
#include "cuda/stream.h"
#include "runtime/group.h"
#include "runtime/process_jobs.h"
#include "selection/choose_text.h"
#include "topology/machine.h"
#include "topology/processors.h"
#include "transport/verbs/device.h"

namespace tutti::runtime {
namespace {

static_assert(2 * kMostChunks <= shm::kPosts);

constexpr std::chrono::milliseconds kLongestSleep{20};
constexpr std::chrono::microseconds kBetweenLooksAtDevices{50};
constexpr std::chrono::milliseconds kLongestWaitForEngine{200}, kLongestWaitForCalls{1000};
constexpr int kMostYields = 1000;
constexpr std::size_t kMostReason = 1000;  // bytes of why a rank cannot use verbs
constexpr std::size_t kMostTriedOut = 32;  // peers, before verbs is used unasked

// Rank 0's table, in the form that has no comments; or what is wrong with it, which all are to hear.
Announcement table_to_announce(const Settings& settings) {
  if (settings.rank != 0 || settings.table.empty()) return {};
  try {
    return {to_text(parse_table(read_table_file(settings.table), settings.table)), ""};
  } catch (const Error& error) {
    return {"", std::string(error.what()) + " (TUTTI_TABLE of rank 0)"};
  }
}

}  // namespace

// --- joining
// ------------------------------------------------------------------------------------------------------------

Job::Job(const Settings& settings, std::shared_ptr<inproc::Hub> hub, std::shared_ptr<MeetingPlace> place)
    : settings_(within_clocks(settings)),
      is_threads_(place != nullptr),
      goes_ahead_(!is_threads_ && settings.size > 1 && !cuda::launches_block()),
      place_(is_threads_ ? std::move(place) : std::make_shared<MeetingPlace>()),
      left_(std::make_unique<std::atomic<bool>[]>(settings.size)) {
  if (hub != nullptr) inproc_ = std::make_unique<inproc::Transport>(std::move(hub), sleeper_);
}

std::shared_ptr<Job> Job::join(const Settings& settings, Store* store, std::shared_ptr<inproc::Hub> hub,
                               std::shared_ptr<MeetingPlace> place) {
  const std::uint32_t number = store != nullptr ? count_join(*store, settings.rank) : 0;  // also of one that fails
  validate(settings);
  verbs::Wish::parse(settings.verbs_device, settings.verbs_gid);  // what is malformed is refused, wanted or not
  std::shared_ptr<Job> job(new Job(settings, std::move(hub), std::move(place)));
  Announcement announcement = table_to_announce(settings);
  announcement.no_verbs = job->open_verbs();
  announcement.sees_gpus = job->sees_gpus_ = cuda::is_possible();
  job->control_ = join_job(job->settings_, store, number, std::move(announcement));
  const std::string& announced = job->control_->announced();
  job->is_own_table_ = !announced.empty();
  job->table_ = announced.empty() ? ChoiceTable::built_in() : parse_table(announced, "the table of rank 0");
  job->find_hosts();
  job->find_fabric();
  job->log_decisions();
  Job* self = job.get();
  job->control_->on_connection([self](int peer, Path path, std::uint64_t communicator, int fd, const Error* error) {
    self->on_connection(peer, path, communicator, fd, error);
  });
  job->control_->on_notice([self](const Notice& notice) { self->on_notice(notice); });
  ProcessJobs::here().add(job);
  return job;
}

// Where verbs may be used: the empty text, or why this rank cannot. All hear of it before anything is decided.
std::string Job::open_verbs() try {
  if (inproc_ != nullptr || settings_.size == 1) return "it needs none";
  if (settings_.transport != "verbs" && settings_.transport != "auto")
    return "it was told to use " + settings_.transport;
  const verbs::Wish wish = verbs::Wish::parse(settings_.verbs_device, settings_.verbs_gid);
  const auto fabric = verbs::open_device(wish, topology::node_of_this_thread());
  // TUTTI_TRANSPORT=verbs: try one peer, and report what is wrong later. `auto`: use verbs only if resources suffice
  // for every peer.
  const auto peers = static_cast<std::size_t>(settings_.size - 1);
  verbs::try_out(*fabric, settings_.transport == "auto" ? std::min(peers, kMostTriedOut) : 1);
  verbs_ = std::make_unique<verbs::Transport>(sleeper_, fabric);
  return "";
} catch (const Error& error) {
  return std::string(error.what()).substr(0, kMostReason);
}

// Which peers are reached by verbs: all or none when told so; else those of other hosts that can, as this rank can. Who
// named a device is to know if it is not used.
void Job::find_fabric() {
  by_verbs_.assign(settings_.size, false);
  const bool is_alone = std::ranges::all_of(host_, [this](int host) { return host == host_[rank()]; });
  for (const Member& member : control_->members()) {
    if (settings_.transport == "verbs" && settings_.size > 1 && !member.no_verbs.empty())
      throw Error(ErrorCode::system,
                  "transport verbs: rank " + std::to_string(member.rank) + " cannot use it: " + member.no_verbs);
    if (settings_.transport == "auto" && !settings_.verbs_device.empty() && member.rank == rank() &&
        !member.no_verbs.empty() && !is_alone)
      log_.warn("goes without RDMA, though TUTTI_VERBS_DEVICE asks for " + settings_.verbs_device + ": " +
                member.no_verbs);
    by_verbs_[member.rank] = verbs_ != nullptr && member.no_verbs.empty() && host_[member.rank] != host_[rank()];
  }
  if (std::find(by_verbs_.begin(), by_verbs_.end(), true) == by_verbs_.end()) verbs_.reset();
  by_tcp_alone_ = inproc_ == nullptr && verbs_ == nullptr && std::ranges::count(host_, host_[rank()]) == 1;
}

// What joining has decided, and why.
void Job::log_decisions() const {
  log_.info([&] {
    std::map<std::string, int> peers;  // by the transport to them
    const std::string& own_reason = control_->members()[rank()].no_verbs;
    std::string no_verbs;
    for (const Member& member : control_->members()) {
      if (member.rank == rank()) continue;
      const bool is_near = shm_ != nullptr && host_[member.rank] == host_[rank()];
      const bool is_verbs = by_verbs_[member.rank];
      ++peers[inproc_ != nullptr ? "inproc" : is_near ? "shm" : is_verbs ? "verbs" : "tcp"];
      if (inproc_ != nullptr || is_near || is_verbs || !no_verbs.empty()) continue;
      const bool is_own = !own_reason.empty();
      no_verbs = "; no RDMA, as of rank " + std::to_string(is_own ? rank() : member.rank) + ": " +
                 (is_own ? own_reason : member.no_verbs);
    }
    std::string text = "is one of " + std::to_string(size()) + " ranks; transports:";
    for (const auto& [transport, count] : peers) text += " " + transport + " to " + std::to_string(count);
    return text + (peers.empty() ? " none" : "") + " (TUTTI_TRANSPORT: " + settings_.transport + no_verbs + ")";
  });
  log_.info([&] {
    return std::string(crowding_.is_crowded() ? "gives way while it waits: the ranks of this host share processors"
                                              : "spins while it waits: each rank of this host has a processor");
  });
  log_.info([&] {
    return "chooses algorithms by " + (is_own_table_ ? std::string("the table of rank 0") : "the built-in table");
  });
}

// Ranks of equal host ids share a host. Where some must share a processor, all give way to each other when they wait.
void Job::find_hosts() {
  std::map<std::string, int> numbers;
  host_.assign(settings_.size, 0);
  for (const Member& member : control_->members())
    host_[member.rank] = numbers.try_emplace(member.host_id, static_cast<int>(numbers.size())).first->second;
  std::vector<topology::Place> places;  // of the ranks of this host
  for (const Member& member : control_->members())
    if (host_[member.rank] == host_[settings_.rank])
      places.push_back({topology::from_bits(member.processors), member.share});
  const auto neighbours = static_cast<int>(places.size());
  const bool must_share = topology::must_share(places);
  if (must_share) crowding_.set_crowded();
  has_gpus_ = std::ranges::any_of(control_->members(), &Member::sees_gpus);
  const std::size_t cache_bytes = topology::largest_cache_bytes(topology::allowed_processors().front());
  cache_bytes_ = cache_bytes > 0 ? cache_bytes : kUsualCacheBytes;
  lender_ = inproc_.get();
  if (inproc_ != nullptr) return;
  if (settings_.transport == "shm" && neighbours != settings_.size)
    throw Error(ErrorCode::unsupported, "transport shm: not all ranks share a host; use auto or tcp");
  if (settings_.transport == "tcp" || settings_.transport == "verbs") {
    std::iota(host_.begin(), host_.end(), 0);  // what matters of a host from here on is that its ranks share memory
  } else {
    shm_ = std::make_unique<shm::Transport>(sleeper_, shm::ring_bytes_for(neighbours, must_share));
    lender_ = shm_.get();
    // Lanes are first written to, and their rings claimed, by peers that may be far.
    shm_->own().keep_near(topology::keep_near_this_thread);
  }
  tcp_ = std::make_unique<tcp::Transport>(sleeper_);
}

Job::~Job() {
  progress_.reset();
  control_.reset();
}

bool Job::takes_engine_within(std::chrono::milliseconds limit) {
  const auto until = std::chrono::steady_clock::now() + limit;
  wanting_.fetch_add(1, std::memory_order_relaxed);
  engine_.share();
  bool locked = engine_.try_lock();
  for (; !locked && std::chrono::steady_clock::now() < until; locked = engine_.try_lock())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  wanting_.fetch_sub(1, std::memory_order_relaxed);
  return locked;
}

// Calls that are under way are given a moment to end. Nobody hears of a later end, nor of the peers': so calls that are
// made or waited for in what is left of the process fail at once.
void Job::leave() {
  if (takes_engine_within(kLongestWaitForEngine)) {
    const FloatEnvironment environment;
    const auto until = std::chrono::steady_clock::now() + kLongestWaitForCalls;
    while (std::ranges::any_of(groups_, &Group::is_busy) && std::chrono::steady_clock::now() < until) {
      advance_all();
      ::sched_yield();
    }
    for (Group* group : groups_) group->leave_at_exit();
    engine_.unlock();
  }
  control_->leave();
  const std::lock_guard lock(groups_mutex_);
  for (Group* group : groups_) group->fail_at_exit();
}

// --- forking
// ------------------------------------------------------------------------------------------------------------

void Job::refuse_if_forked() const {
  if (is_forked_)
    throw Error(ErrorCode::unsupported,
                "rank " + std::to_string(rank()) +
                    ": this process was forked from the one that joined as this rank; "
                    "only that one can make calls. Let the child join a job of its own, or exec",
                rank(), -1);
}

void Job::before_fork() { groups_mutex_.lock(); }
void Job::after_fork_in_parent() { groups_mutex_.unlock(); }

void Job::after_fork_in_child() {
  is_forked_ = true;
  wanting_.store(1, std::memory_order_relaxed);
  for (Group* group : groups_) group->live_for_ever();
  groups_mutex_.unlock();
}

Progress& Job::progress() try {
  if (progress_ == nullptr) progress_ = std::make_unique<Progress>();
  return *progress_;
} catch (const std::system_error& error) {
  throw Error(ErrorCode::system, std::string("no thread for calls on devices: ") + error.what());
}

Transport& Job::transport_to(int peer) {
  if (inproc_ != nullptr) return *inproc_;
  if (shm_ != nullptr && host_[peer] == host_[rank()]) return *shm_;
  if (by_verbs_[peer]) return *verbs_;
  return *tcp_;
}

std::shared_ptr<SymmetricMemory> Job::allocate(std::size_t bytes) const {
  auto memory = std::make_shared<SymmetricMemory>(shm_ == nullptr ? nullptr : shm_->shared_own(), bytes);
  if (verbs_ == nullptr) return memory;
  try {
    memory->register_with(verbs_->registry());
  } catch (const Error&) {
    if (settings_.transport == "verbs") throw;  // else it is sent by copies
  }
  return memory;
}

std::unique_ptr<Channel> Job::open(std::uint64_t communicator, int peer) {
  Transport& transport = transport_to(peer);
  auto channel = transport.channel(communicator, rank(), peer);
  if (peer > rank() || &transport == inproc_.get()) return channel;
  if (&transport == tcp_.get() || &transport == verbs_.get()) {
    control_->connect(peer, Path::tcp, communicator);
  } else if (asked_.insert(peer).second) {  // all communicators of two ranks share one hand-over
    control_->connect(peer, Path::local, 0);
  }
  return channel;
}

// --- news, on the control thread
// ----------------------------------------------------------------------------------------

// A connection that fails is the channel's to report: it asks the control plane first what became of the peer.
void Job::on_connection(int peer, Path path, std::uint64_t communicator, int fd, const Error* error) {
  if (path == Path::tcp && by_verbs_[peer]) {
    error == nullptr ? verbs_->attach(communicator, peer, fd) : verbs_->fail(communicator, peer, error->what());
  } else if (path == Path::tcp) {
    error == nullptr ? tcp_->attach(communicator, peer, fd) : tcp_->fail(communicator, peer, error->what());
  } else if (shm_ != nullptr) {
    error == nullptr ? shm_->attach(peer, fd) : shm_->fail(peer, error->what());
  } else if (fd >= 0) {
    ::close(fd);
  }
  ring();
}

void Job::on_notice(const Notice& notice) {
  const std::lock_guard lock(groups_mutex_);
  switch (notice.kind) {
    case Notice::Kind::lost:
      lost_[notice.peer] = notice.message;
      for (Group* group : groups_) group->lose(notice.peer, notice.message);
      break;
    case Notice::Kind::left: left_[notice.peer].store(true, std::memory_order_release); break;
    case Notice::Kind::agreed:
    case Notice::Kind::differed: partings_.heard(notice); break;
    case Notice::Kind::poisoned: poisoned_.try_emplace(notice.communicator, notice); [[fallthrough]];
    case Notice::Kind::answer:
      for (Group* group : groups_)
        if (group->id() == notice.communicator) group->on_notice(notice);
      break;
  }
  ring();
}

// --- the engine
// ---------------------------------------------------------------------------------------------------------

// The thread that has just released a mutex is usually the quickest to take it again. So a thread that was served last
// stands back for a moment and lets another one be served.
void Job::Lock::queue() {
  job_.refuse_if_forked();
  const std::uint64_t turn = job_.turn_.load(std::memory_order_relaxed);
  for (int i = 0; i < kMostYields && job_.wanting_.load(std::memory_order_relaxed) > 0 &&
                  job_.turn_.load(std::memory_order_relaxed) == turn;
       ++i)
    ::sched_yield();
  job_.wanting_.fetch_add(1, std::memory_order_relaxed);
  lock_.lock();
  job_.wanting_.fetch_sub(1, std::memory_order_relaxed);
  job_.turn_.fetch_add(1, std::memory_order_relaxed);
}

// Bad news may have come while the group was being made.
void Job::add(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  groups_.push_back(&group);
  if (const auto known = poisoned_.find(group.id()); known != poisoned_.end()) group.on_notice(known->second);
  for (const auto& [peer, why] : lost_) group.lose(peer, why);
}

void Job::remove(Group& group) {
  const std::lock_guard lock(groups_mutex_);
  std::erase(groups_, &group);
}

// The set of groups changes only under the engine's lock, so it can be walked without the other one.
void Job::advance_all() {
  for (std::size_t i = 0; i < groups_.size(); ++i) groups_[i]->advance();
}

void Job::watch_driven(std::chrono::steady_clock::time_point now) {
  for (Group* group : groups_) group->watch_driven(now);
}

void Job::watch_processor(const Look& look) {
  if (by_tcp_alone_) crowding_.note_yield(look);
  if (!crowding_.wants_sample(look)) return;
  rusage usage{};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return;
  crowding_.take(
      {.switches = static_cast<std::uint64_t>(usage.ru_nivcsw), .moves = moves(), .thread = std::this_thread::get_id()},
      look);
}

void Job::yield() {
  ::sched_yield();
  crowding_.yielded();
}

std::uint64_t Job::moves() const {
  std::uint64_t sum = 0;
  for (const Group* group : groups_) sum += group->moves();
  return sum;
}

// One thread sleeps for all: the others wait until it wakes, for whatever the news, and one of them takes its place.
void Job::sleep(Lock& lock, const Request& request) {
  if (asleep_) {
    const std::uint64_t seen = wakes_;
    lock.lock_.unlock();
    {
      std::unique_lock news(news_mutex_);
      news_.wait_for(news, kLongestSleep, [&] { return wakes_ != seen; });
    }
    lock.take();
    return;
  }
  const Asleep asleep(*this);
  const std::uint64_t moved_before = moves();
  advance_all();
  if (request.is_over() || moves() != moved_before) return;
  const std::chrono::microseconds longest = on_devices_ > 0 ? kBetweenLooksAtDevices : kLongestSleep;
  lock.lock_.unlock();
  sleeper_.sleep(longest);
  lock.take();
}

Job::Asleep::Asleep(Job& job) : job_(job) {
  job_.asleep_ = true;
  for (Transport* transport : job_.transports())
    if (transport != nullptr) transport->before_sleep();
}

Job::Asleep::~Asleep() {
  for (Transport* transport : job_.transports())
    if (transport != nullptr) transport->after_sleep();
  job_.asleep_ = false;
  {
    const std::lock_guard news(job_.news_mutex_);
    ++job_.wakes_;
  }
  job_.news_.notify_all();
}

}  // namespace tutti::runtime
