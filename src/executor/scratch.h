// The scratch memory of one communicator's calls: one place for all whose messages have been read by the time that the
// call is over, and a ring for those that leave copies.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>

#include "executor/copy_ring.h"
#include "executor/plan.h"
#include "executor/symmetric_memory.h"

namespace tutti::internal {

class Scratch {
 public:
  using Allocate = CopyRing::Allocate;

  // Before operations of `plan` begin, none is under way: makes room for them. Throws what `allocate` throws.
  void fit(const Plan& plan, const Allocate& allocate) {
    if (plan.leaves_copies) return copies_.fit(plan.scratch_bytes, goes_ahead(plan), allocate);
    if (plan.scratch_bytes == 0 || (own_ != nullptr && own_->bytes() >= plan.scratch_bytes)) return;
    own_ = nullptr;
    own_data_ = nullptr;
    own_ = allocate(plan.scratch_bytes);
    own_data_ = own_->data();
  }

  // Once for each operation of `plan`, as it begins: its memory. If the plan leaves copies, not to be written to before
  // copies().is_read().
  std::byte* begin(const Plan& plan) {
    return plan.leaves_copies ? copies_.take(plan.scratch_bytes, goes_ahead(plan)) : own_data_;
  }
  CopyRing& copies() { return copies_; }

  // The communicator ends: its channels keep what peers may still read. Throws std::bad_alloc.
  void hand_to(std::span<const PeerLink> links) const {
    keep_until_read(own_, links);
    copies_.hand_to(links);
  }

 private:
  // The rank receives nothing.
  static bool goes_ahead(const Plan& plan) {
    return std::ranges::none_of(plan.traffic, [](const Traffic& traffic) { return traffic.arrivals > 0; });
  }

  std::shared_ptr<SymmetricMemory> own_;
  std::byte* own_data_ = nullptr;
  CopyRing copies_;
};

}  // namespace tutti::internal
