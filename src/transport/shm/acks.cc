#include "transport/shm/acks.h"

namespace tutti::internal::shm {
namespace {

constexpr std::size_t kToldSoonBytes = 4 << 10;  // the sender may be waiting for room in its ring

}  // namespace

void Acks::consume_fragment(std::byte* data, std::size_t bytes, const Unread& lines) {
  const bool keeps = kept_.should_keep(lines);
  if (keeps) {
    kept_.keep(consumed_, data, space_of(bytes));
    has_exchanged_ = true;
  }
  // Once space has been kept, what is free of the ring may lie in short pieces. So the peer hears of each fragment
  // soon.
  consume(!keeps && (has_exchanged_ || bytes >= kToldSoonBytes));
}

std::byte* Acks::find_kept(std::size_t bytes) {
  if (kept_.empty()) return nullptr;
  const std::uint32_t first = kept_.first_line();
  std::byte* const data = kept_.find(bytes);
  peer_waits_ |= data == nullptr || kept_.first_line() != first;
  return data;
}

bool Acks::tell_alone(std::atomic<std::uint32_t>& ack) {
  if (consumed_ - given_back() > kRow / 2) kept_.give_up();
  const std::uint32_t given_back = this->given_back();
  if (given_back == told_ && given_back - told_alone_ < kMaxLag) return false;
  ack.store(given_back, std::memory_order_release);
  told_ = told_alone_ = given_back;
  peer_waits_ &= kept_.is_held();  // then there is more to tell, after it is taken
  return true;
}

}  // namespace tutti::internal::shm
