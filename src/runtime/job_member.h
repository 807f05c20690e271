// A communicator as its job sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "control/control.h"

namespace tutti::internal {

class Request;

inline constexpr std::uint64_t kWorldId = 1;  // of the communicator of all ranks of a job

class JobMember {
 public:
  virtual std::uint64_t id() const = 0;
  virtual std::uint64_t told_as()
      const = 0;  // the communicator with which it fails: itself, or that of which it is part

  // Under the engine's lock.
  virtual void advance() = 0;
  virtual std::uint64_t moves() const = 0;  // grows whenever a call has moved
  // Now and then while somebody waits for its call; likewise, but only calls that the progress thread drives.
  virtual void watch(std::chrono::steady_clock::time_point now) = 0;
  virtual void watch_driven(std::chrono::steady_clock::time_point now) = 0;
  // An exception that nobody foresaw has ended what drove the call.
  virtual void abandon(Request& request) = 0;
  virtual bool is_busy() const = 0;  // it has calls that are not over

  // On the control thread. A rank of the job is lost; a notice about this communicator, or that this rank is expelled.
  virtual void lose(const Notice& loss) = 0;
  virtual void on_notice(const Notice& notice) = 0;

  // When the process exits: it aborts calls that are not over, and leaves (under the engine's lock); then any call
  // fails (thread-safe).
  virtual void leave_at_exit() = 0;
  virtual void fail_at_exit() = 0;
  // In a forked child, where nothing of a job is destroyed.
  virtual void live_for_ever() = 0;

 protected:
  ~JobMember() = default;
};

}  // namespace tutti::internal
