// The group of calls that a thread has open (tutti::group_start): they are kept until it ends, and begin together then.
#pragma once

#include <memory>

#include "runtime/grouped_join.h"
#include "runtime/request.h"
#include "tutti/communicator.h"
#include "types/call.h"

namespace tutti::internal {

class Group;

// How many group_start() of this thread have had no group_end() yet. Every call looks here.
inline constinit thread_local int open_groups = 0;
inline bool is_grouping() { return open_groups > 0; }

class CallGroup {
 public:
  static void start() { ++open_groups; }
  // The outermost makes the joins, and then begins the calls, and waits for those that block. Throws the first error,
  // after all calls are over that have begun.
  static void end();
  // Instead of end(): forgets the calls, of inner and outer groups too. Nothing has been sent, nor will be: the end of
  // the outermost throws Error{aborted}.
  static void drop() noexcept;

  // A call of `group`, which must live until the group ends. `request` is that of a started call, nullptr of one that
  // blocks or is on a stream. Throws Error{invalid_argument} for an internal call.
  static void add(Group& group, const CallSpec& spec, ConstBuffer input, Buffer output, const Terms& terms,
                  std::shared_ptr<Request> request);

  // A join, in a group.
  static void add(std::unique_ptr<GroupedJoin> join);

  // What a rank sends to itself, and receives from itself: the first to the first, and so on. `of` is its communicator.
  // Throws Error{unsupported} outside a group.
  static void send_to_self(Group& of, const CallSpec& spec, ConstBuffer data, const Terms& terms,
                           std::shared_ptr<Request> request);
  static void receive_from_self(Group& of, const CallSpec& spec, Buffer data, const Terms& terms,
                                std::shared_ptr<Request> request);
};

}  // namespace tutti::internal
