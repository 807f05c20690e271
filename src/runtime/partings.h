// What came of leaving communicators: whether the ranks that left before had made the same calls.
//
// finalize() waits for the answer and throws what it finds. A destructor does neither: what is found then is
// logged and said to the launcher, whose exit status tells of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/log.h"
#include "control/control.h"
#include "runtime/failure_state.h"
#include "runtime/members.h"
#include "tutti/error.h"

namespace tutti::internal {

// Says an error of this rank that no call can throw any more, to the launcher too.
void tell_of_untold(const Log& log, const std::string& what) noexcept;

// Why the communicator of these members has failed, as Notice{poisoned} says.
std::string words_of_verdict(const Notice& verdict, const Members& members);
// "no call #5 before it left", for a rank of which only that is known.
std::string words_of_no_call(std::uint32_t number);

// Thread-safe.
class Partings {
 public:
  explicit Partings(const Log& log) : log_(log) {}

  // To be called before Control::farewell(). `state`: of the communicator, also for a lane of it: who leaves by its
  // destructor is told once of all that went wrong there. `is_awaited`: somebody will call wait().
  void expect(std::uint64_t communicator, const Members& members, const CallAccount& account,
              std::shared_ptr<FailureState> state, bool is_awaited);
  void forget(std::uint64_t communicator);

  // Notice{agreed} or {differed}.
  void heard(const Notice& verdict);
  // Notice{poisoned}: before the hub has heard of the parting, if that is not over.
  void failed(const Notice& verdict);

  // Blocks until the answer is there, no answer comes any more, or it is that late: then nothing is known against it.
  // What is wrong, if anything is.
  std::optional<Error> wait(std::uint64_t communicator, std::chrono::steady_clock::time_point until);
  void end();  // no answer comes any more

 private:
  struct Parting {
    Members members;
    CallAccount account;
    std::shared_ptr<FailureState> state;
    bool is_awaited;
    bool is_over = false;
    std::optional<Failure> failure = {};  // its peer by the number that users know
  };
  static Parting lane_from(const Parting& parting, int peer);
  static std::string difference(const Parting& parting, const Notice& verdict);

  const Log& log_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint64_t, Parting> partings_;  // by communicator
  bool has_ended_ = false;
};

}  // namespace tutti::internal
