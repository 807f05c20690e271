// A call of a group of calls (call_group.h), from when it is kept until the group has ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "runtime/fused.h"
#include "runtime/request.h"
#include "tutti/call.h"
#include "types/call.h"

namespace tutti::internal {

class Group;

// A call that is kept, or a run of small all-reduces that follow each other on a communicator.
struct GroupedCall {
  Group* group;
  CallSpec spec;
  ConstBuffer in = nullptr;
  Buffer out = nullptr;
  Terms terms{};
  std::shared_ptr<Request> request{};  // nullptr until it begins, unless it is a started one
  bool blocks = false;                 // group_end() waits for it
  std::vector<Fused::Part> run{};      // of a run: its calls; spec.count is that of all of them
  std::size_t bytes = 0;               // likewise, their elements
  std::size_t element_bytes = 0;       // likewise
  std::uint64_t digest = 0;            // likewise
  std::unique_ptr<CallRows> rows{};    // those of spec
  std::unique_ptr<Fused> fused{};
};

// The call is never made. Whoever tests its Work or waits for it gets the error.
void forget(const std::shared_ptr<Request>& request, const Error& error);
void forget(GroupedCall& call, const Error& error);

// Both keep the first exception in `first`, unless there is one already.
//
// A call that cannot begin, for example because its communicator has failed, holds up no other. Afterwards `calls` are
// those that have begun.
void begin_all(std::vector<GroupedCall>& calls, std::exception_ptr& first);
// Blocks until the calls that block are over.
void wait_for(std::vector<GroupedCall>& calls, std::exception_ptr& first);

}  // namespace tutti::internal
