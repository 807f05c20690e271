// What all ranks of a communicator make together by collectives on the communicator itself.
#pragma once

#include <cstddef>
#include <memory>

#include "executor/symmetric_memory.h"
#include "runtime/group.h"

namespace tutti::internal {

// As Communicator::split() and allocate(). Throw Error.
std::shared_ptr<Group> split(Group& group, int color, int key);
Operator make_operator(Group& group, const std::string& name, CombineFunction function);
std::shared_ptr<SymmetricMemory> allocate(Group& group, std::size_t bytes);

}  // namespace tutti::internal
