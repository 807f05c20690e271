/// @file
/// Calls that begin together.
#pragma once

#include "tutti/export.h"

namespace tutti {

/// @name Groups of calls
/// @{

/// Opens a group of calls. Those that this thread makes until group_end() begin together there, in the order in which
/// they were made for each communicator. Groups may be nested; then all begin at the outermost group_end().
///
/// Sends and receives of one group cannot deadlock, in whatever order they are made. A rank may send to itself, if the
/// receive is in the same group. A group may hold calls of several communicators. It may even hold those of several
/// ranks that one thread has joined; such a thread must make every blocking call in a group.
///
/// Until the group ends, buffers and communicators must live and stay untouched. No call of the group may read what
/// another one of it writes. A call may be started in a group. Its Work can be tested and waited for once the group has
/// ended; group_end() itself waits if that Work is gone by then. Communicator::split(), allocate() and make_operator()
/// are refused.
///
/// All-reduces of one type and operator that follow each other on a communicator, of at most 8 KiB each, are done in
/// one pass of up to 64 KiB, with the bits that they have alone; but not with Order::any or an algorithm of the
/// caller's choice, and not in a job one of whose ranks sees a GPU. So either all ranks make these calls in a group, or
/// none does: else Error{mismatch}.
///
/// Does not block. Throws nothing.
TUTTI_API void group_start();

/// Ends the group. The outermost blocks until the blocking calls of the group are over, but not for those that are
/// started or have a stream.
///
/// Errors: if an argument of a call is wrong, throws, and no call of the group is made. Else throws the first error of
/// a call, after all calls that block are over; a call that cannot begin holds up no other one. Throws Error{aborted}
/// if an exception has ended a GroupScope within the group: then no call is made. Throws Error{invalid_argument}
/// without group_start() on this thread.
TUTTI_API void group_end();

/// A group of calls as long as the object lives: for a block of code. Not movable; in one thread.
class GroupScope {
 public:
  TUTTI_API GroupScope();  ///< group_start()
  /// group_end(), and throws what that throws. But if an exception ends the block, then nothing of the group is made,
  /// nor of the groups around it.
  TUTTI_API ~GroupScope() noexcept(false);
  GroupScope(const GroupScope&) = delete;             ///< not copyable
  GroupScope& operator=(const GroupScope&) = delete;  ///< not copyable

 private:
  const int exceptions_;
};
/// @}

}  // namespace tutti
