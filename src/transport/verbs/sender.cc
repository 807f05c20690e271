#include "transport/verbs/sender.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "transport/header.h"

namespace tutti::internal::verbs {
namespace {

// Below, a copy is cheaper than a second piece and a wait for the write to be done.
constexpr std::size_t kMinLent = 2048;

}  // namespace

bool Sender::write(JoinedPair& joined) {
  bool moved = false;
  while (!waiting_.empty()) {
    Message& message = waiting_.front();
    const std::uint64_t before = joined.pair.written();
    const bool over = advance(message, joined);
    moved |= joined.pair.written() != before;
    if (!over) break;
    lent_.push_back({lends_, std::move(message.registration)});
    lends_ = 0;
    waiting_.pop_front();
    offers_.erase(offers_.begin(), offers_.lower_bound(pushed_ - waiting_.size()));
  }
  give_back();
  return moved;
}

// From where it lies, as part of the request itself.
bool Sender::send_at_once(const Tag& tag, const std::byte* data, std::size_t bytes, JoinedPair& joined) {
  const std::size_t total = Header::kBytes + bytes;
  if (!idle() || total > joined.pair.most_inline()) return false;
  const std::uint64_t at = place_of(end_, total), end = at + whole_granules(total);
  if (end > consumed_ + kRingBytes) return false;
  const Header header{
      .communicator = communicator_, .tag = tag, .message = pushed_, .offset = 0, .length = bytes, .total = bytes};
  const auto head = header.encode();
  const Piece pieces[] = {{head.data(), head.size(), 0}, {data, bytes, 0}};
  if (!joined.write(std::span(pieces).first(bytes > 0 ? 2 : 1), joined.at(at % kRingBytes), Word::fragment))
    return false;
  end_ = end;
  sent_ = ++pushed_;
  return true;
}

// Of a message that has gone by the ring, from memory that is not registered, the offer may come later.
void Sender::offered(const Offer& offer) {
  if (offer.message >= pushed_ - waiting_.size() && offers_.size() < kOffers) offers_.emplace(offer.message, offer);
}

void Sender::done(std::uint64_t writes) {
  done_ = writes;
  give_back();
}

void Sender::give_back() {
  for (; !lent_.empty() && lent_.front().until <= done_; lent_.pop_front()) ++sent_;
}

// True once all of it has been written.
bool Sender::advance(Message& message, JoinedPair& joined) {
  if (!message.begun && !begin(message, joined)) return false;
  if (message.asks) {
    const Offer* offer = offer_for(message);
    if (offer == nullptr) return false;
    message.asks = false;
    if (!offer->by_ring) message.placed = offer;
  }
  return message.placed != nullptr ? place(message, joined) : ring(message, joined);
}

bool Sender::begin(Message& message, JoinedPair& joined) {
  if (message.bytes >= kMinLent && message.registration == nullptr)
    message.registration = registry_.find(message.data, message.bytes);
  const bool large = message.registration != nullptr && message.bytes >= kLargeBytes;
  if (const Offer* offer = large ? offer_for(message) : nullptr) {
    message.placed = offer;
    message.begun = true;
    return true;
  }
  Header header;
  header.communicator = communicator_;
  header.tag = message.tag;
  header.message = message.number;
  header.total = message.bytes;
  const std::size_t first = large ? 0 : std::min(message.bytes, kMaxFragment - Header::kBytes);
  header.length = large ? 0 : message.bytes;
  if (!write_fragment(joined, header.encode(), message, first)) return false;
  message.written = first;
  message.begun = true;
  message.asks = large;
  return true;
}

// The offer for this message, if there is one. Where the two calls differ there is none: the peer finds out by the
// header, and says so.
const Offer* Sender::offer_for(const Message& message) const {
  const auto found = offers_.find(message.number);
  if (found == offers_.end()) return nullptr;
  const Offer& offer = found->second;
  return offer.tag == message.tag && offer.bytes == message.bytes ? &offer : nullptr;
}

bool Sender::place(Message& message, JoinedPair& joined) {
  while (message.written < message.bytes) {
    const std::size_t bytes = std::min(message.bytes - message.written, most_in_a_write_);
    const Piece piece{message.data + message.written, bytes, message.registration->local_key()};
    const Place to{message.placed->address + message.written, message.placed->remote_key};
    const bool last = message.written + bytes == message.bytes;
    const bool written =
        last ? joined.write({&piece, 1}, to, Word::placed, true) : joined.pair.write({{&piece, 1}, to, false, 0});
    if (!written) return false;
    lends_ = joined.pair.written();
    message.written += bytes;
  }
  return true;
}

bool Sender::ring(Message& message, JoinedPair& joined) {
  while (message.written < message.bytes) {
    const std::size_t bytes = std::min(message.bytes - message.written, kMaxFragment);
    if (!write_fragment(joined, {}, message, bytes)) return false;
    message.written += bytes;
  }
  return true;
}

// The header, if any, and the message's next bytes. False: no room.
bool Sender::write_fragment(JoinedPair& joined, std::span<const std::byte> header, const Message& message,
                            std::size_t bytes) {
  const std::size_t total = header.size() + bytes;
  const std::uint64_t at = place_of(end_, total);
  if (at + whole_granules(total) > consumed_ + kRingBytes) return false;
  const std::size_t offset = at % kRingBytes;
  const std::byte* const from = message.data + message.written;
  std::byte* const staging = joined.mine.data() + kStaging + offset;
  const std::uint32_t key = joined.mine.local_key();
  bool written;
  if (message.registration != nullptr && bytes > 0) {
    std::copy(header.begin(), header.end(), staging);
    const Piece pieces[2] = {{staging, header.size(), key}, {from, bytes, message.registration->local_key()}};
    written = joined.write(header.empty() ? std::span(pieces).subspan(1) : std::span(pieces), joined.at(offset),
                           Word::fragment, true);
    if (written) lends_ = joined.pair.written();
  } else {
    std::copy(header.begin(), header.end(), staging);
    if (bytes > 0) std::memcpy(staging + header.size(), from, bytes);
    const Piece piece{staging, total, key};
    written = joined.write({&piece, 1}, joined.at(offset), Word::fragment);
  }
  if (written) end_ = at + whole_granules(total);
  return written;
}

}  // namespace tutti::internal::verbs
