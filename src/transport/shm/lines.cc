#include "transport/shm/lines.h"

namespace tutti::internal::shm {

void Lines::refresh_acked() {
  const Lane& in = lanes_.in();
  read_ack(in.ack.load(std::memory_order_acquire));
  for (std::uint32_t number = consumed_; number - consumed_ < kLines; ++number) {
    const std::uint64_t stamp = in.lines[number % kLines].stamp.load(std::memory_order_acquire);
    if (static_cast<std::uint32_t>(stamp) != number + 1) break;
    read_ack(static_cast<std::uint32_t>(stamp >> 32));
  }
}

void Lines::write_owed() {
  if (posts_.has_waiting()) posts_.write_alone(lanes_.out());
  if (!owes_ack() || !lanes_.connect()) return;  // it has closed its end, and waits for nothing
  lanes_.out().ack.store(consumed_, std::memory_order_release);
  acknowledged_ = acknowledged_alone_ = consumed_;
  peer_waits_ = false;
  lanes_.notify();
}

}  // namespace tutti::internal::shm
