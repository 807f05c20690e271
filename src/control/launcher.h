// A word to `tutti run`, for what a rank learns when it can no longer throw: in a destructor, or on its way out.
//
// The launcher takes datagrams at a Unix socket in the abstract namespace, whose name is in TUTTI_LAUNCHER, from
// processes of its own user. One datagram is one report, text of at most kMaxReportBytes: "rank 3: " and the words.
// Any report makes the exit status of the job 1 where it would have been 0.
#pragma once

#include <cstddef>
#include <string>

namespace tutti::internal {

inline constexpr std::size_t kMaxReportBytes = 1024;

// Tells the launcher, if there is one that listens, that this rank ended badly though its exit status will not show it.
// What does not fit is cut off. Never blocks, never throws: where the launcher's queue is full it has reports enough.
void tell_launcher(int rank, const std::string& what) noexcept;

}  // namespace tutti::internal
