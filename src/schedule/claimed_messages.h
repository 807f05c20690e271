// Which of one peer's messages the steps of a schedule have claimed, in program order: a receive names its message; a
// message among the sources of a reduce is the first that no step before it has claimed.
#pragma once

#include <cstdint>
#include <set>

namespace tutti::internal {

class ClaimedMessages {
 public:
  std::uint32_t first_unclaimed() const { return first_; }

  // For a reduce.
  std::uint32_t claim_first() {
    const std::uint32_t message = first_;
    claim(message);
    return message;
  }

  // For a receive. False if the message is claimed already.
  bool claim(std::uint32_t message) {
    if (message < first_ || !ahead_.insert(message).second) return false;
    while (!ahead_.empty() && *ahead_.begin() == first_) {
      ahead_.erase(ahead_.begin());
      ++first_;
    }
    return true;
  }

  // Some message is claimed although one before it is not.
  bool has_gap() const { return !ahead_.empty(); }

 private:
  std::uint32_t first_ = 0;
  std::set<std::uint32_t> ahead_;
};

}  // namespace tutti::internal
