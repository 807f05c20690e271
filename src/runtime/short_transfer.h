// What another send or receive of a lane must be like to be done as the last one was (AtOnce).
#pragma once

#include <cstddef>
#include <cstdint>

#include "executor/plan.h"
#include "tutti/call.h"
#include "types/call.h"

namespace tutti::internal {

class ShortTransfer {
 public:
  ShortTransfer() = default;  // nothing is like it
  // Of a call like `plan`'s with that label. asks_driver: where memory lies must be asked, unless the caller says it.
  ShortTransfer(const Plan& plan, std::uint64_t label, bool asks_driver)
      : count_(plan.call.count),
        misaligned_(plan.alignment - 1),
        label_(static_cast<int>(label)),
        dtype_(plan.call.dtype),
        order_(plan.call.order),
        asks_driver_(asks_driver) {}

  // Whether this is such a call. What is odd, wrong or seldom is not.
  bool is_like(const ConstBuffer& buffer, std::size_t count, DType dtype, const CallOptions& options) const {
    const auto at = reinterpret_cast<std::uintptr_t>(buffer.data);
    const bool is_host = buffer.memory == MemoryKind::host || (buffer.memory == MemoryKind::automatic && !asks_driver_);
    return count == count_ && count != 0 && at != 0 && (at & misaligned_) == 0 && is_host && dtype == dtype_ &&
           options.order == order_ && options.tag == label_ && options.algorithm == Algorithm::automatic &&
           options.stream == nullptr && options.timeout.count() == 0;
  }

 private:
  std::size_t count_ = 0;
  std::uintptr_t misaligned_ = 0;  // these bits of an address
  int label_ = 0;
  DType dtype_ = DType::uint8;
  Order order_ = Order::canonical;
  bool asks_driver_ = false;
};

}  // namespace tutti::internal
