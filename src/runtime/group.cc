#include "runtime/group.h"

#include <algorithm>
#include <cstring>
#include <exception>

namespace tutti::runtime {
namespace {

Layout layout_of(const Job& job, const std::vector<int>& members) {
  Layout layout = Layout::of(static_cast<int>(members.size()));
  std::map<int, int> numbers;
  for (std::size_t r = 0; r < members.size(); ++r)
    layout.host[r] = numbers.try_emplace(job.host_of(members[r]), static_cast<int>(numbers.size())).first->second;
  return layout;
}

}  // namespace

Group::Group(std::shared_ptr<Job> job, std::uint64_t id, std::vector<int> members, int rank)
    : job_(std::move(job)),
      id_(id),
      members_(std::move(members)),
      rank_(rank),
      plans_(rank_, layout_of(*job_, members_), job_->table(), job_->cache_bytes(), job_->has_gpus(), job_->log()),
      links_(members_.size()),
      place_(size() <= kMostGuests ? job_->meeting_place() : nullptr) {}

std::shared_ptr<Group> Group::make(std::shared_ptr<Job> job, std::uint64_t id, std::vector<int> members, int rank) {
  std::shared_ptr<Group> group(new Group(std::move(job), id, std::move(members), rank));
  Engine::Lock lock(group->job_->engine());
  group->job_->add(*group);
  group->job_->control().publish(id, group->ledger_.history());
  return group;
}

Group::~Group() {
  Engine::Lock lock(job_->engine());
  job_->remove(*this);
  job_->control().unpublish(id_);
  try {
    leave();
    tell_untold();
  } catch (const std::exception&) {  // no memory for the words
  }
  links_.clear();
}

// --- leaving
// ------------------------------------------------------------------------------------------------------------

// What a peer sent and this rank never took: the ranks made different calls.
bool Group::finds_unclaimed() {
  for (int peer = 0; peer < size(); ++peer) {
    Tag tag;
    if (links_[peer].channel == nullptr || !links_[peer].channel->unclaimed(tag)) continue;
    if (Call::unpack(tag).sequence > ledger_.count())
      continue;  // the peer goes on without this rank: it will hear that it has left
    abort({ErrorCode::mismatch, peer,
           "the ranks made different calls: " + name_of(peer) + " called " + describe(Call::unpack(tag)) + ", which " +
               name_of(rank_) + " never did before it left"});
    return true;
  }
  return false;
}

void Group::tell_untold() {
  if (const auto what = failure_.take_unheard()) tell_of_untold(job_->log(), *what);
}

void Group::leave_at_exit() {
  if (is_busy()) {
    const Request& first = current_ != nullptr ? *current_ : *queue_.front();
    abort({ErrorCode::aborted, rank_, name_of(rank_) + "'s process exited during " + describe(first.call())});
    failure_.note_unheard();
    advance();
  }
  leave();
  tell_untold();
}

void Group::fail_at_exit() {
  fail({ErrorCode::aborted, rank_, name_of(rank_) + " has left its job, as its process is exiting"});
}

void Group::leave(bool is_awaited) {
  if (size() == 1 || has_failed() || is_busy() || std::exchange(has_parted_, true)) return;
  if (finds_unclaimed()) {
    failure_.note_unheard();
    return;
  }
  const CallAccount account = ledger_.account();
  job_->notices().partings().expect(id_, members_, rank_, account, is_awaited);
  job_->control().farewell(id_, size(), account);
}

void Group::finalize() {
  {
    Engine::Lock lock(job_->engine());
    finish_all(lock);
    leave(true);
    if (has_failed()) tell(error_for(nullptr));
  }
  // A rank 0 that is silent for 3 times connect_timeout counts as lost, and then the answer comes from this process.
  const auto limit = std::max<std::chrono::milliseconds>(4 * job_->settings().connect_timeout, std::chrono::seconds(2));
  if (const auto error = job_->notices().partings().wait(id_, limit)) throw Error(*error);
}

int Group::local_rank_of(int job_rank) const {
  const auto found = std::find(members_.begin(), members_.end(), job_rank);
  return found == members_.end() ? -1 : static_cast<int>(found - members_.begin());
}

// --- collectives on the communicator itself
// ---------------------------------------------------------------------------------

void Group::all_gather_words(std::uint8_t purpose, const void* mine, void* all, std::size_t words) {
  run({.collective = Collective::all_gather, .dtype = DType::uint64, .flags = purpose, .count = words}, mine, all);
}

std::shared_ptr<Group> Group::split(int color, int key) {
  struct Wish {
    std::int64_t color, key;
  };
  const Wish mine{color, key};
  std::vector<Wish> all(size());
  all_gather_words(1, &mine, all.data(), 2);
  std::vector<int> together;
  for (int r = 0; r < size(); ++r)
    if (color < 0 ? r == rank_ : all[r].color == color) together.push_back(r);
  std::stable_sort(together.begin(), together.end(), [&](int a, int b) { return all[a].key < all[b].key; });
  const int rank = static_cast<int>(std::find(together.begin(), together.end(), rank_) - together.begin());
  for (int& member : together) member = members_[member];
  // All members derive the same number from what they agree on; groups of one call differ in color, or in their only
  // member.
  const std::uint64_t distinct =
      color < 0 ? (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(rank_) : static_cast<std::uint64_t>(color);
  const std::uint64_t id = mix(mix(mix(id_) + ++splits_) + distinct);
  return make(job_, id, std::move(together), rank);
}

std::shared_ptr<SymmetricMemory> Group::allocate(std::size_t bytes) {
  const std::uint64_t mine = bytes;
  std::vector<std::uint64_t> all(size());
  all_gather_words(2, &mine, all.data(), 1);
  for (int r = 0; r < size(); ++r)
    if (all[r] != bytes)
      throw Error(ErrorCode::invalid_argument, "allocate: " + name_of(r) + " asks for " + std::to_string(all[r]) +
                                                   " bytes, " + name_of(rank_) + " for " + std::to_string(bytes) +
                                                   "; all must ask for the same");
  std::shared_ptr<SymmetricMemory> memory;
  std::string trouble;
  try {
    Engine::Lock lock(job_->engine());
    memory = job_->transports().allocate(bytes);
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::uint64_t fine = memory != nullptr;
  all_gather_words(2, &fine, all.data(), 1);
  for (int r = 0; r < size(); ++r)
    if (all[r] == 0)
      throw Error(ErrorCode::system, "allocate: " + name_of(r) + " has no room for " + std::to_string(bytes) +
                                         " bytes" + (r == rank_ ? " (" + trouble + ")" : ""));
  return memory;
}

}  // namespace tutti::runtime
