#include "runtime/group.h"

#include <algorithm>
#include <cstring>

namespace tutti::runtime {
namespace {

Layout layout_of(const Job& job, const std::vector<int>& members) {
  Layout layout = Layout::of(static_cast<int>(members.size()));
  std::map<int, int> numbers;
  for (std::size_t r = 0; r < members.size(); ++r)
    layout.host[r] = numbers.try_emplace(job.host_of(members[r]), static_cast<int>(numbers.size())).first->second;
  return layout;
}

std::uint64_t mix(std::uint64_t x) {  // splitmix64's finaliser (Steele, Lea, Flood 2014)
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

Group::Group(std::shared_ptr<Job> job, std::uint64_t id, std::vector<int> members, int rank)
    : job_(std::move(job)),
      id_(id),
      members_(std::move(members)),
      rank_(rank),
      layout_(layout_of(*job_, members_)),
      chooser_(job_->table(), static_cast<int>(members_.size()), layout_.hosts()),
      links_(members_.size()),
      place_(size() <= kMostGuests ? job_->meeting_place() : nullptr),
      history_(std::make_shared<CallHistory>()) {}

std::shared_ptr<Group> Group::make(std::shared_ptr<Job> job, std::uint64_t id, std::vector<int> members, int rank) {
  std::shared_ptr<Group> group(new Group(std::move(job), id, std::move(members), rank));
  Job::Lock lock(*group->job_);
  group->job_->add(*group);
  group->job_->control().publish(id, group->history_);
  return group;
}

Group::~Group() {
  Job::Lock lock(*job_);
  job_->remove(*this);
  job_->control().unpublish(id_);
  for (int peer = 0; !has_failed() && peer < size(); ++peer) {
    Tag tag;
    if (links_[peer].channel == nullptr || !links_[peer].channel->unclaimed(tag)) continue;
    if (Call::unpack(tag).sequence > sequence_)
      continue;  // the peer goes on without this rank: it will hear that it has left
    abort({ErrorCode::mismatch, peer,
           "rank " + std::to_string(peer) + " called " + describe(Call::unpack(tag)) + ", which rank " +
               std::to_string(rank_) + " never did before it left"});
    std::fprintf(stderr, "tutti: rank %d: %s\n", rank_, failure_->message.c_str());
  }
  links_.clear();
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
      throw Error(ErrorCode::invalid_argument, "allocate: rank " + std::to_string(r) + " asks for " +
                                                   std::to_string(all[r]) + " bytes, rank " + std::to_string(rank_) +
                                                   " for " + std::to_string(bytes) + "; all must ask for the same");
  std::shared_ptr<SymmetricMemory> memory;
  std::string trouble;
  try {
    Job::Lock lock(*job_);
    memory = job_->allocate(bytes);
  } catch (const Error& error) {
    trouble = error.what();
  }
  const std::uint64_t fine = memory != nullptr;
  all_gather_words(2, &fine, all.data(), 1);
  for (int r = 0; r < size(); ++r)
    if (all[r] == 0)
      throw Error(ErrorCode::system, "allocate: rank " + std::to_string(r) + " has no room for " +
                                         std::to_string(bytes) + " bytes" + (r == rank_ ? " (" + trouble + ")" : ""));
  return memory;
}

}  // namespace tutti::runtime
