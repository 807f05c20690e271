// What all ranks of a group make together, or none of them (struct Vote).
#pragma once

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include "runtime/group.h"

namespace tutti::internal {

// Forgets what was decided on a vote for which this rank has not waited long enough.
void vote(Group& group, Vote::On on, bool has_made = false);
std::chrono::milliseconds limit_of_votes(Group& group);
// Takes this rank's vote back, if it is not decided by then. Returns the ranks of the group that are there and have not
// voted, as the hub says; none if it does not answer.
std::vector<int> recall_vote(Group& group, Vote::On on);

// Blocks until all ranks have voted. Whether each of them has made what all are making. If a rank is lost or leaves, or
// if the communicator fails, before all have voted, every rank throws that.
std::vector<bool> vote_on_making(Group& group, bool has_made);

// Every rank makes it, or every rank throws. make() may throw: Error{system}, and then the others hear that this rank
// `lack`; or another Error, which make() throws on all ranks. The lowest rank that lacks something is named.
template <class Make>
auto make_on_all(Group& group, const std::string& what, const std::string& lack, Make&& make) {
  const auto failure_of = [&](int r, const std::string& why) {
    return Error(ErrorCode::system, what + ": " + group.members().name_of(r) + " " + lack + why, group.rank(), r);
  };
  decltype(make()) mine{};
  std::optional<Error> failure;
  try {
    mine = make();
  } catch (const Error& error) {
    failure = error;
  } catch (const std::exception& error) {
    failure = failure_of(group.rank(), std::string(" (") + error.what() + ")");
  }
  const std::vector<bool> made = vote_on_making(group, !failure);
  if (failure && failure->code != ErrorCode::system) throw Error(*failure);  // what all have found
  for (int r = 0; r < group.size(); ++r)
    if (!made[r]) throw r == group.rank() && failure ? Error(*failure) : failure_of(r, "");
  return mine;
}

}  // namespace tutti::internal
