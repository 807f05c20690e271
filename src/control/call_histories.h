// What this rank does and did in each communicator, for the ranks that ask.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "control/message.h"

namespace tutti::internal {

class CallHistories {
 public:
  void publish(std::uint64_t communicator, std::shared_ptr<const CallHistory> history) {
    histories_[communicator] = std::move(history);
  }
  // The rank has left it. Others may still ask what it did there.
  void unpublish(std::uint64_t communicator);
  Answer answer(const Probe& probe) const;

 private:
  using Entry = std::pair<std::uint64_t, std::shared_ptr<const CallHistory>>;
  const Entry* find_left(std::uint64_t communicator) const;

  std::map<std::uint64_t, std::shared_ptr<const CallHistory>> histories_;
  static constexpr std::size_t kKeptLeft = 256;
  std::deque<Entry> left_;  // communicators, the last kKeptLeft
};

}  // namespace tutti::internal
