// Hears from the kernel when a process of this host ends, also where a forked child of it keeps its connections open.
//
// The lowest rank of a host watches all others of it, and each of these watches the lowest other one. So every death is
// seen by a rank that is there, and a rank that is not the lowest needs one descriptor only.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "control/control.h"

namespace tutti::internal {

// When a process of this host started, in the kernel's ticks; 0 if that cannot be read. With it a number of a process
// means one process only.
std::uint64_t start_of_process(std::int64_t pid);
// The inode of the namespace of this process's number; 0 if that cannot be read.
std::uint64_t own_pid_space();

// All of it on the control thread.
class ProcessWatch {
 public:
  // ended: called with a rank whose process has ended. `members` outlives it.
  ProcessWatch(boost::asio::io_context& io, int rank, const std::vector<Member>& members,
               std::function<void(int)> ended);

  // Watches whom this rank is to watch now. A lower rank that is doubted may not watch the others any more. Ranks of
  // this process, and of which this process cannot see the number, are not watched; nor is any where the system
  // refuses.
  void follow(const std::function<bool(int)>& is_gone, const std::function<bool(int)>& is_doubted);

 private:
  void watch(int rank);
  void say_ended(int rank);

  boost::asio::io_context& io_;
  const int rank_;
  const std::vector<Member>& members_;
  const std::function<void(int)> ended_;
  std::map<int, std::shared_ptr<boost::asio::posix::stream_descriptor>> watched_;  // nullptr: has ended, or cannot be
};

}  // namespace tutti::internal
