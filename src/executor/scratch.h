// The scratch memory of one communicator's calls.
//
// A call that copies what it sends once for all its readers ends before they have read it (Plan::leaves_copies). So
// there are two places for such calls, which they take in turn. A call waits only for the readers of the call before
// the last one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "executor/peer_link.h"
#include "executor/plan.h"
#include "executor/symmetric_memory.h"

namespace tutti::internal {

class Scratch {
 public:
  using Allocate = std::function<std::shared_ptr<SymmetricMemory>(std::size_t bytes)>;

  // Before operations of `plan` begin, none is under way: makes room for them. Throws what `allocate` throws.
  void fit(const Plan& plan, const Allocate& allocate);

  // Once for each operation of `plan`, as it begins: its memory. If the plan leaves copies, not to be written to before
  // is_read().
  std::byte* begin(const Plan& plan) {
    if (!plan.leaves_copies) return own_.data;
    turn_ = 1 - turn_;
    return copies_[turn_].data;
  }
  // Whether all peers have read what lies there. If not: one that has not, in `reader`. Also frees what was outgrown
  // and has been read. Throws what channels throw.
  bool is_read(std::span<const PeerLink> links, int& reader);
  // The operation is over, `links` count its messages, and peers may still read some in its memory.
  void leave(std::span<const PeerLink> links);

  // The communicator ends: its channels keep what peers may not have read. Throws std::bad_alloc.
  void hand_to(std::span<const PeerLink> links) const;

 private:
  struct Area {
    std::shared_ptr<SymmetricMemory> memory{};
    std::byte* data = nullptr;          // of it
    std::vector<std::uint64_t> left{};  // by rank: PeerLink::sent behind the last message that lies here

    bool has(std::size_t bytes) const { return memory != nullptr && memory->bytes() >= bytes; }
    bool is_read(std::span<const PeerLink> links, int& reader);
  };

  Area own_;  // what lies here is read by the time that the call is over
  std::array<Area, 2> copies_;
  std::size_t turn_ = 0;        // of the copies
  std::vector<Area> outgrown_;  // that may not have been read yet
};

}  // namespace tutti::internal
