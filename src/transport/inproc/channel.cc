#include "transport/inproc/channel.h"

#include <cassert>
#include <cstring>
#include <string>

namespace tutti::internal::inproc {

Channel::Channel(std::shared_ptr<Hub> hub, Resident& self, std::uint64_t communicator, int rank, int peer)
    : hub_(std::move(hub)),
      self_(self),
      out_key_(communicator, rank, peer),
      in_key_(communicator, peer, rank),
      peer_(peer) {
  const std::lock_guard lock(hub_->mutex_);
  out_ = hub_->direction(out_key_);
  in_ = hub_->direction(in_key_);
  out_->sender = &self_;
  in_->receiver = &self_;
}

Channel::~Channel() {
  const std::lock_guard lock(hub_->mutex_);
  out_->sender = nullptr;
  in_->receiver = nullptr;
  out_->sender_gone = true;
  in_->receiver_gone = true;
  wake(out_->receiver);
  hub_->drop_if_left(out_key_);
  hub_->drop_if_left(in_key_);
}

// --- sending ---------------------------------------------------------------------------------------------------------

void Channel::send(const Tag& tag, const std::byte* data, std::size_t bytes, Copier) {
  const std::lock_guard lock(hub_->mutex_);
  out_->lent.push_back({tag, data, bytes});
  wake(out_->receiver);
}

std::uint64_t Channel::sent() {
  const std::lock_guard lock(hub_->mutex_);
  check_receiver();
  return out_->claims.done();
}

std::byte* Channel::reserve(const Tag& tag, std::size_t bytes, const std::byte*, Copier, bool) {
  const std::lock_guard lock(hub_->mutex_);
  const Claim* claim = out_->claims.front();
  if (!out_->lent.empty() || !claim || claim->viewed || out_->receiver_gone) return nullptr;
  // A disagreement is the receiver's to report: send() will show it one.
  return claim->tag == tag && claim->bytes == bytes ? claim->data : nullptr;
}

void Channel::commit(const Tag& tag) {
  const std::lock_guard lock(hub_->mutex_);
  assert(out_->claims.front() && out_->claims.front()->tag == tag);
  (void)tag;
  out_->claims.finish_front();
  wake(out_->receiver);
}

void Channel::check_reserved() {
  const std::lock_guard lock(hub_->mutex_);
  if (out_->receiver_gone) throw ChannelClosed{peer_, "the peer left while a message was being written to it"};
}

void Channel::check_receiver() const {
  if (out_->receiver_gone && !out_->lent.empty()) throw ChannelClosed{peer_, "the peer left without taking a message"};
}

// --- receiving -------------------------------------------------------------------------------------------------------

void Channel::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes, const ReceiveHints&) {
  const std::lock_guard lock(hub_->mutex_);
  in_->claims.receive(message, tag, data, bytes);
  wake(in_->sender);  // it may want to reserve
}

std::uint64_t Channel::received() {
  std::unique_lock lock(hub_->mutex_);
  fill(lock);
  return in_->claims.received();
}

bool Channel::view(const Tag& tag, std::size_t bytes, std::span<const std::byte>& here) {
  std::unique_lock lock(hub_->mutex_);
  if (!in_->claims.viewing()) {
    in_->claims.view(tag, bytes);
    released_ = 0;
  }
  fill(lock);
  if (!front_met()) return false;
  const Lent& message = in_->lent.front();
  here = std::span(message.data, message.bytes).subspan(released_);
  return true;
}

void Channel::release(std::size_t bytes) {
  const std::lock_guard lock(hub_->mutex_);
  released_ += bytes;
  assert(in_->claims.front()->viewed && released_ <= in_->lent.front().bytes);
  if (released_ == in_->lent.front().bytes) give_back_front();
}

bool Channel::unclaimed(Tag& tag) {
  const std::lock_guard lock(hub_->mutex_);
  const std::uint64_t ahead = in_->claims.first_unclaimed() - in_->claims.done();
  if (in_->sender_gone || in_->lent.size() <= ahead) return false;
  tag = in_->lent[ahead].tag;
  return true;
}

const Claim* Channel::front_met() const {
  const Claim* claim = in_->claims.front();
  if (!claim) return nullptr;
  if (in_->sender_gone) throw ChannelClosed{peer_, "the peer left without sending a message that is waited for"};
  if (in_->lent.empty()) return nullptr;
  const Lent& message = in_->lent.front();
  if (message.tag != claim->tag) throw TagMismatch{peer_, claim->tag, message.tag};
  if (message.bytes != claim->bytes) throw LengthMismatch{peer_, claim->bytes, message.bytes};
  return claim;
}

bool Channel::fill(std::unique_lock<std::mutex>& lock) {
  bool filled = false;
  for (const Claim* claim = front_met(); claim && !claim->viewed; claim = front_met()) {
    const Lent message = in_->lent.front();
    std::byte* const data = claim->data;
    lock.unlock();  // both are lent until we give them back
    if (message.bytes > 0) std::memcpy(data, message.data, message.bytes);
    lock.lock();
    give_back_front();
    filled = true;
  }
  return filled;
}

void Channel::give_back_front() {
  in_->lent.pop_front();
  in_->claims.finish_front();
  wake(in_->sender);
}

// --- both ------------------------------------------------------------------------------------------------------------

bool Channel::progress() {
  std::unique_lock lock(hub_->mutex_);
  check_receiver();
  return fill(lock);
}

// The peer looks at what is lent under the mutex, in a turn: it sees that we have gone, or we see its turn.
bool Channel::withdraw() {
  const std::lock_guard lock(hub_->mutex_);
  out_->sender_gone = in_->receiver_gone = true;
  const Resident* peer = out_->receiver;
  if (peer == nullptr) return true;
  if (!withdrawn_in_) {
    withdrawn_in_ = peer->turn.count();
    wake(peer);
  }
  return peer->turn.is_over(*withdrawn_in_);
}

void Channel::wake(const Resident* resident) {
  if (resident && resident->asleep) resident->sleeper.ring();
}

}  // namespace tutti::internal::inproc
