#include "transport/verbs/receiver.h"

#include <algorithm>
#include <cassert>

#include "memory/copy.h"

namespace tutti::internal::verbs {
namespace {

constexpr char kNotOffered[] = "the peer wrote to a place that it was not offered";

}  // namespace

void Receiver::receive(std::uint64_t message, const Tag& tag, std::byte* data, std::size_t bytes) {
  claims_.receive(message, tag, data, bytes);
  // One less than there may be: the message whose turn it is may always be answered.
  if (bytes >= kLargeBytes && answers_.size() + 1 < kMaxOffered) offer({message, tag, data, bytes, false});
}

// Where the claim's message may be written to, if its memory is registered.
bool Receiver::offer(const Claim& claim) {
  auto registration = registry_.find(claim.data, claim.bytes);
  if (registration == nullptr) return false;
  const Offer offer{.message = claim.message,
                    .tag = claim.tag,
                    .bytes = claim.bytes,
                    .address = reinterpret_cast<std::uintptr_t>(claim.data),
                    .remote_key = registration->remote_key()};
  answers_.emplace(claim.message, Answer{offer, std::move(registration)});
  untold_.push_back(claim.message);
  return true;
}

void Receiver::release(std::size_t bytes, JoinedPair& joined) {
  assert(claims_.viewing() && header_ && bytes <= left());
  if (bytes > 0) use(bytes, joined);
  if (left() == 0) finish_front();
}

bool Receiver::fragment(std::size_t bytes, JoinedPair& joined) {
  if (bytes == 0 || bytes > kMaxFragment) return false;
  const std::uint64_t at = place_of(end_, bytes), end = at + whole_granules(bytes);
  if (end > joined.consumed + kRingBytes) return false;
  end_ = end;
  if (take_at_once(at, bytes, joined)) {
    joined.consumed = end;
  } else {
    arrivals_.push_back({at, bytes, false});
  }
  return true;
}

// The short way of a message in one fragment, and most are: false, and nothing has changed, where it is not exactly
// what a receive waits for. What is wrong then is said by the long way, absorb().
bool Receiver::take_at_once(std::uint64_t at, std::size_t bytes, const JoinedPair& joined) {
  const Claim* const claim = claims_.front();
  if (claim == nullptr || claim->viewed || bytes != Header::kBytes + claim->bytes || header_ || !arrivals_.empty())
    return false;
  const std::byte* const from = joined.mine.data() + at % kRingBytes;
  const auto header = Header::decode(std::span<const std::byte, Header::kBytes>(from, Header::kBytes));
  if (!header || header->communicator != communicator_ || header->message != claim->message ||
      header->tag != claim->tag || header->length != claim->bytes || header->total != claim->bytes)
    return false;
  copy_bytes(claim->data, from + Header::kBytes, claim->bytes);
  finish_front();
  return true;
}

// The front fragment's first bytes have been used.
void Receiver::use(std::size_t bytes, JoinedPair& joined) {
  Arrival& front = arrivals_.front();
  assert(!front.placed && bytes <= front.bytes);
  front.at += bytes;
  front.bytes -= bytes;
  done_ += bytes;
  drop_if_used(joined);
}

void Receiver::drop_if_used(JoinedPair& joined) {
  if (arrivals_.front().bytes > 0) return;
  joined.consumed = whole_granules(arrivals_.front().at);
  arrivals_.pop_front();
}

bool Receiver::absorb(JoinedPair& joined) {
  bool moved = false;
  for (const Claim* claim = front_met(joined); claim != nullptr; claim = front_met(joined)) {
    if (header_->length < left() && !answered_) answer(*claim);
    if (claim->viewed && left() > 0 && !arrivals_.empty() && arrivals_.front().placed) reject(kNotOffered);
    if (claim->viewed) return moved;
    for (; left() > 0 && !arrivals_.empty(); moved = true) {
      const Arrival front = arrivals_.front();
      if (front.placed) {
        const auto answer = answers_.find(claim->message);
        if (answer == answers_.end() || answer->second.offer.by_ring) reject(kNotOffered);
        arrivals_.pop_front();
        done_ = header_->total;
      } else {
        if (front.bytes > left()) reject("the peer sent more than the message has");
        copy_bytes(claim->data + done_, joined.mine.data() + front.at % kRingBytes, front.bytes);
        use(front.bytes, joined);
      }
    }
    if (left() > 0) return moved;
    finish_front();
    moved = true;
  }
  return moved;
}

// A header that asks where its message shall go: the answer may have been given before.
void Receiver::answer(const Claim& claim) {
  answered_ = true;
  if (answers_.contains(claim.message) || (!claim.viewed && offer(claim))) return;
  answers_.emplace(
      claim.message,
      Answer{{.message = claim.message, .tag = claim.tag, .bytes = claim.bytes, .by_ring = true}, nullptr});
  untold_.push_back(claim.message);
}

bool Receiver::tell(JoinedPair& joined) {
  bool wrote = false;
  while (!untold_.empty()) {
    // One write for all that lie next to each other.
    const std::size_t at = offers_written_ % kOffers;
    std::byte* const staging = joined.mine.data() + kOfferStaging + at * Offer::kBytes;
    std::size_t looked = 0, count = 0;
    for (; looked < untold_.size() && at + count < kOffers; ++looked) {
      const auto answer = answers_.find(untold_[looked]);
      if (answer == answers_.end()) continue;  // the message has come by the ring
      const auto bytes = answer->second.offer.encode();
      std::copy(bytes.begin(), bytes.end(), staging + count++ * Offer::kBytes);
    }
    const Piece piece{staging, count * Offer::kBytes, joined.mine.local_key()};
    if (count > 0 && !joined.write({&piece, 1}, joined.at(kOffersAt + at * Offer::kBytes), Word::offers)) return wrote;
    untold_.erase(untold_.begin(), untold_.begin() + static_cast<std::ptrdiff_t>(looked));
    offers_written_ += count;
    wrote |= count > 0;
  }
  return (joined.owes_credit() && joined.write({}, joined.at(0), Word::credit)) || wrote;
}

// The claim whose message has begun to arrive.
const Claim* Receiver::front_met(JoinedPair& joined) {
  const Claim* claim = claims_.front();
  if (claim == nullptr) return nullptr;
  if (!header_ && !arrivals_.empty() && arrivals_.front().placed) {
    // Placed without a header: the peer has compared the two calls, and found them equal.
    header_ = Header{.tag = claim->tag, .total = claim->bytes};
    answered_ = true;
    done_ = 0;
  }
  if (!parse_header(joined)) return nullptr;
  if (header_->tag != claim->tag) throw TagMismatch{peer_, claim->tag, header_->tag};
  if (header_->total != claim->bytes) throw LengthMismatch{peer_, claim->bytes, header_->total};
  return claim;
}

bool Receiver::parse_header(JoinedPair& joined) {
  if (header_) return true;
  if (arrivals_.empty() || arrivals_.front().placed) return false;
  Arrival& front = arrivals_.front();
  if (front.bytes < Header::kBytes) reject("the peer sent something that is not a message");
  const std::span<const std::byte, Header::kBytes> bytes(joined.mine.data() + front.at % kRingBytes, Header::kBytes);
  header_ = Header::decode(bytes);
  if (!header_) reject("the peer sent something that is not a message of version 1");
  if (header_->communicator != communicator_) reject("the peer sent a message of another communicator");
  if (header_->message != claims_.done() || header_->offset != 0 ||
      (header_->length != header_->total && header_->length != 0))
    reject("the peer sent messages out of order");
  front.at += Header::kBytes;
  front.bytes -= Header::kBytes;
  done_ = 0;
  drop_if_used(joined);
  return true;
}

std::optional<std::span<const std::byte>> Receiver::shown(const JoinedPair& joined) const {
  if (!header_ || claims_.front() == nullptr || !claims_.front()->viewed) return std::nullopt;
  if (left() == 0) return std::span<const std::byte>();
  if (arrivals_.empty() || arrivals_.front().placed) return std::nullopt;
  const Arrival& front = arrivals_.front();
  return std::span(joined.mine.data() + front.at % kRingBytes, std::min(front.bytes, left()));
}

std::optional<Tag> Receiver::unclaimed(JoinedPair& joined) {
  if (claims_.front() != nullptr || !parse_header(joined)) return std::nullopt;
  return header_->tag;
}

bool Receiver::waits() const {
  if (claims_.front() == nullptr) return false;
  if (!header_) return true;
  std::size_t here = 0;
  for (const Arrival& arrival : arrivals_) here += arrival.bytes;
  return here < left();
}

void Receiver::finish_front() {
  if (!answers_.empty()) answers_.erase(claims_.done());
  claims_.finish_front();
  header_.reset();
  answered_ = false;
}

void Receiver::reject(const char* what) const { throw ChannelClosed{peer_, what}; }

}  // namespace tutti::internal::verbs
