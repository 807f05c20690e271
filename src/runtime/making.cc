#include "runtime/making.h"

#include <algorithm>
#include <utility>

#include "base/seconds.h"

namespace tutti::internal {
namespace {

constexpr std::chrono::milliseconds kAnswersWithin{1000};  // usually less than one; there may be no hub yet

}  // namespace

std::chrono::milliseconds limit_of_votes(Group& group) {
  return group.timeout().count() > 0 ? group.timeout() : group.job().settings().timeout;
}

void vote(Group& group, Vote::On on, bool has_made) {
  const std::vector<int>& ranks = group.members().job_ranks();
  group.job().notices().decisions().forget(group.id());
  group.job().control().vote(
      {.communicator = group.id(), .ranks = {ranks.begin(), ranks.end()}, .on = on, .has_made = has_made});
}

std::vector<int> recall_vote(Group& group, Vote::On on) {
  Decisions& decisions = group.job().notices().decisions();
  group.job().control().recall(group.id(), on, decisions.begin_recall(group.id(), on));
  std::vector<int> absent;
  for (const std::int32_t rank : decisions.wait_for_absent(group.id(), on, kAnswersWithin))
    absent.push_back(group.members().rank_of(rank));
  return absent;
}

std::vector<bool> vote_on_making(Group& group, bool has_made) {
  const Members& members = group.members();
  std::vector<bool> made(static_cast<std::size_t>(group.size()), has_made);
  if (group.size() == 1) return made;
  Job& job = group.job();
  const std::vector<int>& ranks = members.job_ranks();
  vote(group, Vote::On::making, has_made);
  const auto leaver = [&] {
    const auto found = std::ranges::find_if(ranks, [&](int rank) { return job.notices().has_left(rank); });
    return static_cast<int>(found - ranks.begin());
  };
  const auto is_in_vain = [&] { return leaver() < group.size() || group.failure().has_value(); };
  Decisions& decisions = job.notices().decisions();
  auto decided = decisions.wait(group.id(), Vote::On::making, limit_of_votes(group), is_in_vain);
  const auto take_decided = [&] { return decisions.wait(group.id(), Vote::On::making, {}, [] { return true; }); };
  std::vector<int> absent;
  if (!decided && leaver() == group.size() && !group.failure()) {
    absent = recall_vote(group, Vote::On::making);
    decided = take_decided();  // the last ones may just have come
  }
  if (!decided) {
    if (const int rank = leaver(); rank < group.size())
      group.abort({ErrorCode::peer_left, rank, members.name_of(rank) + " has left before all had made it"});
    else
      group.abort({ErrorCode::timeout, absent.empty() ? -1 : absent.front(),
                   (absent.empty() ? "not all ranks" : "all but " + members.names_of(absent)) +
                       " have made it within " + in_seconds(limit_of_votes(group))});
    decided = take_decided();  // the verdict is there, and the hub may have decided before it
  }
  if (!decided || decided->kind != Notice::Kind::decided) group.refuse();
  for (int r = 0; r < group.size(); ++r) made[r] = std::ranges::find(decided->ranks, ranks[r]) != decided->ranks.end();
  return made;
}

}  // namespace tutti::internal
