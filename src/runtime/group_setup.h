// What ranks of a communicator make together: all of them by collectives on the communicator itself, or some of them
// without any message.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "executor/symmetric_memory.h"
#include "runtime/group.h"

namespace tutti::internal {

// As Communicator::split(), subgroup(), shrink(), make_operator() and allocate(). Throw Error.
std::shared_ptr<Group> split(Group& group, int color, int key);
std::shared_ptr<Group> subgroup(Group& group, std::span<const int> ranks, const std::string& name);
std::shared_ptr<Group> shrink(Group& group);
Operator make_operator(Group& group, const std::string& name, CombineFunction function);
std::shared_ptr<SymmetricMemory> allocate(Group& group, std::size_t bytes);

}  // namespace tutti::internal
