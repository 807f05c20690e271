// What came of leaving communicators: whether the ranks that left before had made the same calls.
//
// finalize() waits for the answer and throws what it finds. A destructor does neither: what is found then is
// logged and said to the launcher, whose exit status tells of it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/log.h"
#include "control/control.h"
#include "tutti/error.h"

namespace tutti::runtime {

// "rank 2", and where the job calls it otherwise "rank 2 (of the job: 5)". members[r] is the job's rank of rank r.
std::string rank_name(const std::vector<int>& members, int rank);

// Says an error of this rank that no call can throw any more, to the launcher too.
void tell_of_untold(const Log& log, const std::string& what) noexcept;

// Thread-safe.
class Partings {
 public:
  explicit Partings(const Log& log) : log_(log) {}

  // To be called before Control::farewell(). `is_awaited`: somebody will call wait().
  void expect(std::uint64_t communicator, std::vector<int> members, int rank, const CallAccount& account,
              bool is_awaited);

  // Notice{agreed} or {differed}.
  void heard(const Notice& verdict);

  // Blocks until the answer is there, or until `limit` has passed: then nothing is known against it. What is wrong, if
  // anything is.
  std::optional<Error> wait(std::uint64_t communicator, std::chrono::milliseconds limit);

 private:
  struct Parting {
    std::vector<int> members;
    int rank;
    CallAccount account;
    bool is_awaited;
    bool is_over = false;
    std::optional<Error> error;
  };
  static int peer_of(const Parting& parting, const Notice& verdict);
  static std::string difference(const Parting& parting, const Notice& verdict);

  const Log& log_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::map<std::uint64_t, Parting> partings_;  // by communicator
};

}  // namespace tutti::runtime
