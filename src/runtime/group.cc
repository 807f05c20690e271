#include "runtime/group.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>

namespace tutti::internal {
namespace {

Layout layout_of(const Job& job, const Members& members) {
  Layout layout = Layout::of(members.size());
  std::map<int, int> numbers;
  for (int r = 0; r < members.size(); ++r)
    layout.host[r] =
        numbers.try_emplace(job.host_of(members.job_rank_of(r)), static_cast<int>(numbers.size())).first->second;
  return layout;
}

// So that no lane has the number of a communicator that is split off.
constexpr std::uint64_t kLaneSalt = 0x6c616e65;
// So that two calls of the same number can be named where ranks differ.
constexpr std::uint32_t kRowsOfFarewell = 32;

std::uint64_t next_serial() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

Group::Group(std::shared_ptr<Job> job, std::uint64_t id, const Members& members, std::shared_ptr<FailureState> failure,
             std::uint64_t told_as)
    : job_(std::move(job)),
      id_(id),
      told_as_(told_as),
      serial_(next_serial()),
      members_(members),
      plans_(rank(), layout_of(*job_, members_), job_->table(), job_->host(), job_->has_gpus(), job_->log()),
      failure_(std::move(failure)),
      links_(members_.size()),
      rendezvous_(size() <= kMaxParticipants ? job_->device_rendezvous() : nullptr),
      lane_at_(2 * static_cast<std::size_t>(members_.size())) {}

std::shared_ptr<Group> Group::make(std::shared_ptr<Job> job, std::uint64_t id, const Members& members,
                                   std::chrono::milliseconds timeout) {
  std::shared_ptr<Group> group(new Group(std::move(job), id, members, std::make_shared<FailureState>(), id));
  Engine::Lock lock(group->job_->engine());
  group->timeout_ = timeout;
  group->begin();
  return group;
}

void Group::begin() {
  job_->add(*this);
  job_->control().publish(id_, ledger_.history());
  job_->recorder().add(id_, told_as_, members_, ledger_.history());
}

Group& Group::lane(int from, int to) {
  const bool sends = from == rank();
  const int peer = sends ? to : from;
  if (peer < 0 || peer >= size())
    throw Error(ErrorCode::invalid_argument, std::string(sends ? "send: " : "receive: ") + "there is no rank " +
                                                 std::to_string(peer) + "; there are " + std::to_string(size()));
  if (Group* const known = known_lane(peer, sends)) return *known;
  const Engine::Lock lock(job_->engine());
  if (const auto found = lanes_.find({from, to}); found != lanes_.end()) return *found->second;
  const std::uint64_t way = (static_cast<std::uint64_t>(from) << 32) + static_cast<std::uint64_t>(to);
  const Members two = from == to ? Members(members_, from) : Members(members_, from, to);
  std::shared_ptr<Group> lane(new Group(job_, mix(mix(id_ ^ kLaneSalt) + way), two, failure_, told_as_));
  lane->timeout_ = timeout_;
  lanes_.emplace(std::pair(from, to), lane);
  lane->begin();
  lane_at_[place_of_lane(peer, sends)].store(lane.get(), std::memory_order_release);
  return *lane;
}

std::uint32_t Group::count_subgroup(std::uint64_t key) {
  const Engine::Lock lock(job_->engine());
  return ++subgroups_[key];
}

std::vector<std::shared_ptr<Group>> Group::lanes() const {
  const Engine::Lock lock(job_->engine());
  std::vector<std::shared_ptr<Group>> lanes;
  for (const auto& [way, lane] : lanes_) lanes.push_back(lane);
  return lanes;
}

Group::~Group() {
  try {
    const Engine::Lock lock(job_->engine());
    leave();
    tell_untold();
  } catch (const std::exception&) {  // no memory for the words
  }
  lanes_.clear();
  const Engine::Lock lock(job_->engine());
  job_->remove(*this);
  job_->control().unpublish(id_);
  job_->recorder().remove(id_);
  leave_copies();
  links_.clear();
}

// --- leaving --------------------------------------------------------------------------------------------------------

// What a peer sent and this rank never took: the ranks made different calls.
bool Group::finds_unclaimed() {
  for (int peer = 0; peer < size(); ++peer) {
    Tag tag;
    if (links_[peer].channel == nullptr || !links_[peer].channel->unclaimed(tag)) continue;
    if (Call::unpack(tag).sequence > ledger_.count())
      continue;  // the peer goes on without this rank: it will hear that it has left
    Tag mine;
    const bool known = ledger_.history()->at(Call::unpack(tag).sequence, mine) && mine != tag;
    abort({ErrorCode::mismatch, peer,
           "the ranks made different calls: " + members_.name_of(peer) + " " + members_.name_of(Call::unpack(tag)) +
               ", " + members_.own_name() + " " +
               (known ? members_.name_of(Call::unpack(mine)) : "never took what it sent there")});
    return true;
  }
  return false;
}

void Group::tell_untold() {
  if (const auto what = failure_->take_unheard()) tell_of_untold(job_->log(), *what);
}

void Group::leave_at_exit() {
  if (is_busy()) {
    const Request& first = current_ != nullptr ? *current_ : *queue_.front();
    abort({ErrorCode::aborted, rank(),
           members_.own_name() + "'s process exited during " + members_.name_of(first.call())});
    failure_->note_unheard();
    advance();
  }
  leave();
  tell_untold();
}

void Group::fail_at_exit() {
  fail({ErrorCode::aborted, rank(), members_.own_name() + " has left its job, as its process is exiting"});
}

void Group::leave(bool is_awaited) {
  for (const auto& [way, lane] : lanes_) lane->leave(is_awaited);
  if (has_parted_) return;
  const auto note_mismatch = [this] {
    if (has_failed() && failure_->failure()->code == ErrorCode::mismatch) failure_->note_unheard();
  };
  // Ask only once here: another thread may report a failure at any time, and a later one is noted below.
  if (has_failed()) return note_mismatch();
  if (size() == 1 || is_busy()) return;
  has_parted_ = true;
  if (finds_unclaimed()) {
    failure_->note_unheard();
    return;
  }
  Farewell farewell{.communicator = id_, .ranks = size(), .account = ledger_.account(), .whole = told_as_};
  if (members_.is_lane()) farewell.peer = members_.job_rank_of(1 - rank());
  farewell.rows = ledger_.history()->last_rows(kRowsOfFarewell);
  farewell.goes_on = std::ranges::any_of(lanes_, [](const auto& lane) { return lane.second->is_busy(); });
  Partings& partings = job_->notices().partings();
  partings.expect(id_, members_, farewell.account, failure_, is_awaited);
  if (has_failed()) {  // that has just been heard, maybe before the parting was expected
    partings.forget(id_);
    note_mismatch();
    return;
  }
  job_->control().farewell(farewell);
}

void Group::finalize() {
  {
    Engine::Lock lock(job_->engine());
    finish_all(lock);
    for (const auto& [way, lane] : lanes_) lane->finish_all(lock);
    leave(true);
    if (has_failed()) tell(error_for(nullptr));
  }
  // A hub that is silent counts as lost, and then the next one answers.
  const auto limit =
      std::max<std::chrono::milliseconds>(4 * job_->settings().heartbeat_timeout, std::chrono::seconds(2));
  const auto until = BackoffPolicy::Clock::now() + limit;
  std::optional<Error> error = job_->notices().partings().wait(id_, until);
  for (const auto& lane : lanes()) {
    const std::optional<Error> its = job_->notices().partings().wait(lane->id_, until);
    if (!error) error = its;
  }
  if (!error) return;
  failure_->claim_telling();
  throw Error(*error);
}

}  // namespace tutti::internal
