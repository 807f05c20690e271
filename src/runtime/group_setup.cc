#include "runtime/group_setup.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/seconds.h"
#include "runtime/making.h"

namespace tutti::internal {
namespace {

// So that no subgroup has the number of a communicator that is split off.
constexpr std::uint64_t kSubgroupSalt = 0x73756267726f7570;

// Marks these calls, so that a user's all_gather does not match them.
enum Purpose : std::uint8_t { splitting = kSplit, allocating = kAllocate, making_operator = kMakeOperator };

void all_gather_words(Group& group, Purpose purpose, const void* mine, void* all, std::size_t words) {
  group.run({.collective = Collective::all_gather, .dtype = DType::uint64, .flags = purpose, .count = words}, mine,
            all);
}

std::vector<std::uint64_t> all_gather_word(Group& group, Purpose purpose, std::uint64_t mine) {
  std::vector<std::uint64_t> all(group.size());
  all_gather_words(group, purpose, &mine, all.data(), 1);
  return all;
}

// The lowest rank that says something else than rank 0, so that all ranks name the same one; -1: there is none.
template <class T>
int first_other(const std::vector<T>& said) {
  const auto found = std::ranges::find_if(said, [&](const T& one) { return one != said.front(); });
  return found == said.end() ? -1 : static_cast<int>(found - said.begin());
}

}  // namespace

std::shared_ptr<Group> split(Group& group, int color, int key) {
  struct Choice {
    std::int64_t color, key;
  };
  const Choice mine{color, key};
  std::vector<Choice> all(group.size());
  all_gather_words(group, splitting, &mine, all.data(), 2);
  // All members derive the same number from what they agree on; groups of one call differ in color, or in their only
  // member.
  const std::uint64_t distinct = color < 0 ? (std::uint64_t{1} << 32) + static_cast<std::uint64_t>(group.rank())
                                           : static_cast<std::uint64_t>(color);
  const std::uint64_t id = mix(mix(mix(group.id()) + group.count_split()) + distinct);
  return make_on_all(group, "split", "could not make the communicator", [&] {
    std::vector<int> together;
    for (int r = 0; r < group.size(); ++r)
      if (color < 0 ? r == group.rank() : all[r].color == color) together.push_back(r);
    std::ranges::stable_sort(together, {}, [&](int r) { return all[r].key; });
    const int rank = static_cast<int>(std::ranges::find(together, group.rank()) - together.begin());
    for (int& member : together) member = group.members().job_rank_of(member);
    return Group::make(group.shared_job(), id, Members(std::move(together), rank), group.timeout());
  });
}

// All members derive the same number from what they agree on: the communicator, the list, the name, and how many they
// have made of that list and that name.
std::shared_ptr<Group> subgroup(Group& group, std::span<const int> ranks, const std::string& name) {
  const auto refuse = [&](const std::string& why) { throw Error(ErrorCode::invalid_argument, "subgroup: " + why); };
  if (ranks.empty()) refuse("the list has no ranks");
  std::vector<int> together;
  std::vector<bool> is_in(static_cast<std::size_t>(group.size()));
  std::uint64_t key = mix(mix(group.id() ^ kSubgroupSalt) + ranks.size());
  for (const int rank : ranks) {
    if (rank < 0 || rank >= group.size())
      refuse("there is no rank " + std::to_string(rank) + "; there are " + std::to_string(group.size()));
    if (is_in[rank]) refuse("rank " + std::to_string(rank) + " is in the list twice");
    is_in[rank] = true;
    together.push_back(group.members().job_rank_of(rank));
    key = mix(key + static_cast<std::uint64_t>(rank));
  }
  if (!is_in[group.rank()]) refuse("this rank, " + std::to_string(group.rank()) + ", is not in the list");
  for (const char letter : name) key = mix(key + static_cast<unsigned char>(letter));
  const std::uint64_t id = mix(key + group.count_subgroup(key));
  const int rank = static_cast<int>(std::ranges::find(ranks, group.rank()) - ranks.begin());
  return Group::make(group.shared_job(), id, Members(std::move(together), rank), group.timeout());
}

// All hear the same decision, which has a number of its own.
std::shared_ptr<Group> shrink(Group& group) {
  Job& job = group.job();
  job.engine().refuse_if_forked();
  const Members& members = group.members();
  const auto limit = limit_of_votes(group);
  vote(group, Vote::On::going_on);
  Decisions& decisions = job.notices().decisions();
  auto decided = decisions.wait(group.id(), Vote::On::going_on, limit, [] { return false; });
  if (!decided) {
    const std::vector<int> absent = recall_vote(group, Vote::On::going_on);
    decided = decisions.wait(group.id(), Vote::On::going_on, {}, [] { return true; });  // they may just have come
    if (!decided)
      throw Error(
          ErrorCode::timeout,
          members.own_name() + ": shrink: " +
              (absent.empty() ? "not all ranks that are left" : "all that are left but " + members.names_of(absent)) +
              " have called it within " + in_seconds(limit),
          group.rank(), absent.empty() ? -1 : absent.front());
  }
  if (decided->kind == Notice::Kind::expelled)
    throw Error(decided->code, members.own_name() + ": shrink: the other ranks have given it up: " + decided->message,
                group.rank(), group.rank());
  if (decided->ranks.empty())
    throw Error(ErrorCode::partitioned,
                members.own_name() + ": shrink: the ranks that can be reached are no majority of those that may live",
                group.rank(), -1);
  std::vector<int> left;
  for (const std::int32_t rank : decided->ranks) left.push_back(members.rank_of(rank));
  return subgroup(group, left, "shrink " + std::to_string(decided->serial));
}

Operator make_operator(Group& group, const std::string& name, CombineFunction function) {
  using Name = std::array<char, 64>;
  constexpr std::size_t kMost = PlanCache::kMaxCustom;
  const auto refuse = [](ErrorCode code, const std::string& why) { throw Error(code, "make_operator: " + why); };
  if (name.empty() || name.size() >= std::tuple_size_v<Name>)
    refuse(ErrorCode::invalid_argument, "the name \"" + name + "\" must have 1 to 63 bytes");
  if (function == nullptr) refuse(ErrorCode::invalid_argument, "there is no function");
  if (group.custom_operators() >= kMost)
    refuse(ErrorCode::unsupported, "there are " + std::to_string(kMost) + " already, as many as can be");
  Name mine{};
  std::ranges::copy(name, mine.begin());
  std::vector<Name> all(static_cast<std::size_t>(group.size()));
  all_gather_words(group, making_operator, mine.data(), all.data(), sizeof(Name) / 8);
  (void)make_on_all(group, "make_operator", "could not make it", [&] {
    if (const int r = first_other(all); r >= 0)
      throw Error(ErrorCode::mismatch,
                  "make_operator: " + group.members().name_of(0) + " calls it \"" + all[0].data() + "\", " +
                      group.members().name_of(r) + " \"" + all[r].data() + "\"",
                  group.rank(), r);
    return true;
  });
  return group.add_custom({name, std::move(function)});
}

std::shared_ptr<SymmetricMemory> allocate(Group& group, std::size_t bytes) {
  const Members& members = group.members();
  const std::vector<std::uint64_t> asked = all_gather_word(group, allocating, bytes);
  const std::string lack = "has no room for " + std::to_string(bytes) + " bytes";
  return make_on_all(group, "allocate", lack, [&] {
    if (const int r = first_other(asked); r >= 0)
      throw Error(ErrorCode::invalid_argument,
                  "allocate: " + members.name_of(0) + " asks for " + std::to_string(asked[0]) + " bytes, " +
                      members.name_of(r) + " for " + std::to_string(asked[r]) + "; all must ask for the same",
                  group.rank(), r);
    try {
      const Engine::Lock lock(group.job().engine());
      return group.job().transports().allocate(bytes);
    } catch (const Error& error) {
      throw Error(ErrorCode::system, "allocate: " + members.own_name() + " " + lack + " (" + error.what() + ")",
                  group.rank(), group.rank());
    }
  });
}

}  // namespace tutti::internal
