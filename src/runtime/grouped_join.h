// Joins that a group of calls keeps (call_group.h). A join waits for other ranks, and one thread may have several of
// them, so each is made on a thread of its own.
#pragma once

#include <memory>
#include <vector>

namespace tutti::internal {

class GroupedJoin {
 public:
  virtual ~GroupedJoin() = default;
  // Joins, on a thread of the library. What it has joined it keeps. Throws what is wrong.
  virtual void join() = 0;
  // Gives the caller what was joined, on the caller's thread, if all joins of the group have come about. Else it is
  // never called, and the destructor leaves what was joined.
  virtual void hand_over() noexcept = 0;
  // Joins that say the same are made one after the other, on one thread: those that split one communicator. nullptr:
  // it waits for no other join.
  virtual const void* follows() const { return nullptr; }
};

// All of them at once. Blocks until all are over. Throws the error that came first; none is handed over then.
void join_together(const std::vector<std::unique_ptr<GroupedJoin>>& joins);

}  // namespace tutti::internal
