#include "executor/fake_channel.h"

#include <algorithm>
#include <cstring>

namespace tutti::internal {
namespace {

constexpr std::size_t kGrain = 8;  // pieces are whole elements of every type
// A push that writes too much, or a reduction that reads too much, spoils nothing but the message.
constexpr std::size_t kRoomBehind = 1 << 14;

}  // namespace

void Wire::send(const Tag& tag, const std::byte* data, std::size_t bytes) {
  if (reserved_) throw RunError{"a message is sent between a reservation and its commit"};
  messages_.push_back({.tag = tag, .data = data, .bytes = bytes, .buffers = dice_.one_in(3)});
}

std::uint64_t Wire::sent() {
  if (dice_.one_in(3)) return known_sent_;
  const auto back = std::ranges::find(messages_, false, &Message::given_back);
  return known_sent_ = static_cast<std::uint64_t>(back - messages_.begin());
}

std::uint64_t Wire::published() {
  if (!dice_.one_in(3)) known_published_ = messages_.size();
  return known_published_;
}

std::byte* Wire::reserve(const Tag& tag, std::size_t bytes) {
  if (reserved_) throw RunError{"two reservations at once"};
  if (dice_.one_in(2)) return nullptr;
  Message message{.tag = tag, .bytes = bytes};
  const auto claim = claims_.find(messages_.size());
  const bool is_posted = claim != claims_.end() && claim->second.data != nullptr;
  if (is_posted) check_claim(claim->second, messages_.size(), tag, bytes);
  reserved_in_place_ = is_posted && !dice_.one_in(3);
  if (!reserved_in_place_) message.buffer.resize(bytes + kRoomBehind);
  reserved_ = std::move(message);
  return reserved_in_place_ ? claim->second.data : reserved_->buffer.data();
}

void Wire::commit(const Tag& tag) {
  if (!reserved_ || reserved_->tag != tag) throw RunError{"a commit of what was not reserved"};
  reserved_->given_back = true;
  if (reserved_in_place_) reserved_->delivered = true;
  messages_.push_back(std::move(*reserved_));
  if (!reserved_in_place_) messages_.back().data = messages_.back().buffer.data();
  reserved_.reset();
}

void Wire::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes) {
  if (!posted_.empty() && posted_.back() >= message) throw RunError{"receives out of order"};
  if (!claims_.try_emplace(message, Claim{tag, data, bytes}).second) throw RunError{"a message is claimed twice"};
  posted_.push_back(message);
}

std::uint64_t Wire::received() {
  if (dice_.one_in(3)) return known_received_;
  const std::size_t here = first_undelivered();
  return known_received_ = static_cast<std::uint64_t>(std::ranges::lower_bound(posted_, here) - posted_.begin());
}

bool Wire::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  if (!viewing_) {
    std::uint64_t first = 0;
    while (claims_.contains(first)) ++first;
    claims_.emplace(first, Claim{tag, nullptr, bytes});
    viewing_ = first;
    shown_ = released_ = 0;
  }
  const std::size_t number = *viewing_;
  if (first_undelivered() != number || number >= messages_.size()) return false;
  const Message& message = messages_[number];
  check_claim(claims_.at(number), number, message.tag, message.bytes);
  if (message.buffers && !message.given_back) return false;
  if (shown_ == released_ || dice_.one_in(2))
    shown_ = dice_.one_in(3) ? bytes : std::min(bytes, shown_ + dice_.draw() % 8 * kGrain);
  here = {message.data + released_, shown_ - released_};
  return !here.empty() || bytes == 0;
}

void Wire::release(std::size_t bytes) {
  released_ += bytes;
  if (!viewing_ || released_ > shown_) throw RunError{"more is released than was shown"};
  Message& message = messages_[*viewing_];
  if (released_ < message.bytes) return;
  message.given_back = message.delivered = true;
  viewing_.reset();
}

std::vector<std::size_t> Wire::movable() const {
  std::vector<std::size_t> movable;
  for (std::size_t i = 0; i < messages_.size(); ++i) {
    const Message& message = messages_[i];
    if (message.delivered) continue;
    const auto claim = claims_.find(i);
    const bool is_posted = claim != claims_.end() && claim->second.data != nullptr;
    if (is_posted || (message.buffers && !message.given_back)) movable.push_back(i);
  }
  return movable;
}

void Wire::move() {
  const std::vector<std::size_t> choice = movable();
  const std::size_t number = choice[dice_.draw() % choice.size()];
  Message& message = messages_[number];
  const bool loads = message.buffers && !message.given_back;
  if (loads) message.buffer.resize(message.bytes + kRoomBehind);
  if (!loads) check_claim(claims_.at(number), number, message.tag, message.bytes);
  const std::size_t piece = std::min(message.bytes - message.moved, (1 + dice_.draw() % 8) * kGrain);
  std::byte* const to = loads ? message.buffer.data() : claims_.at(number).data;
  if (piece > 0) std::memcpy(to + message.moved, message.data + message.moved, piece);
  message.moved += piece;
  if (message.moved < message.bytes) return;
  if (loads) message.data = message.buffer.data();
  message.moved = 0;
  message.given_back = true;
  message.delivered = !loads;
}

bool Wire::is_over() const {
  return !reserved_ && first_undelivered() == messages_.size() && claims_.size() == messages_.size();
}

void Wire::check_claim(const Claim& claim, std::size_t number, const Tag& tag, std::size_t bytes) const {
  if (claim.tag != tag || claim.bytes != bytes)
    throw RunError{"message " + std::to_string(number) + " has " + std::to_string(bytes) + " bytes where " +
                   std::to_string(claim.bytes) + " are expected"};
}

std::size_t Wire::first_undelivered() const {
  return static_cast<std::size_t>(std::ranges::find(messages_, false, &Message::delivered) - messages_.begin());
}

}  // namespace tutti::internal
