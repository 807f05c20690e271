// What a receiver has asked for, in the order of the messages that will bring it: the bookkeeping behind Channel's
// receive() and view(), for transports that need no more.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <deque>

#include "transport/transport.h"

namespace tutti::internal {

// Message number `message` is to be filled into data[0, bytes), or (viewed) to be looked at.
struct Claim {
  std::uint64_t message;
  Tag tag;
  std::byte* data;
  std::size_t bytes;
  bool viewed;
};

class Claims {
 public:
  void receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes) {
    assert(message >= next_);
    waiting_.push_back({message, tag, data, bytes, false});
    next_ = message + 1;
  }
  void view(const Tag& tag, std::size_t bytes) {
    const std::uint64_t message = first_unclaimed();
    const auto at = waiting_.begin() + static_cast<std::ptrdiff_t>(message - done_);
    waiting_.insert(at, {message, tag, nullptr, bytes, true});
    if (message == next_) ++next_;
    viewing_ = true;
  }

  bool viewing() const { return viewing_; }
  std::uint64_t done() const { return done_; }          // messages that claims have been served with
  std::uint64_t received() const { return received_; }  // of those, not viewed

  // The claim on message done(), which is the next to come; nullptr if nobody has claimed it.
  const Claim* front() const {
    return waiting_.empty() || waiting_.front().message != done_ ? nullptr : &waiting_.front();
  }

  // The front claim has been served.
  void finish_front() {
    (front()->viewed ? viewing_ = false : ++received_);
    waiting_.pop_front();
    ++done_;
  }

  std::uint64_t first_unclaimed() const {
    std::uint64_t message = done_;
    for (const Claim& claim : waiting_) {
      if (claim.message != message) break;
      ++message;
    }
    return message;
  }

 private:
  std::deque<Claim> waiting_;  // by message, ascending; there may be gaps, which are left to view()
  std::uint64_t next_ = 0;     // above all that have been claimed
  std::uint64_t done_ = 0, received_ = 0;
  bool viewing_ = false;  // one of them is a view
};

}  // namespace tutti::internal
