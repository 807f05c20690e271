// What two ends of a channel share of each other's memory, and how they count in it.
//
// Each end has one registered block:
//
//   offset            bytes
//   0                 kRingBytes              what the peer sends: fragments, written by it
//   kRingBytes        kOffers * Offer::kBytes what the peer offers, written by it
//   kStaging          kRingBytes              what this end sends, at the same places as at the peer, where it must be
//                                             copied first
//   kOfferStaging     kOffers * Offer::kBytes what this end offers
//
// A fragment lies in one piece, at a multiple of kGranule. Both ends count the ring's bytes from 0 for ever and derive
// the same places, so none is ever told. The sender never has more than kRingBytes under way that the receiver has not
// given back (its credit), so nothing is overwritten and no write finds the peer without a request for it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/transport.h"

namespace tutti::internal::verbs {

inline constexpr std::size_t kRingBytes = 256 << 10;
inline constexpr std::size_t kGranule = 512;
inline constexpr std::size_t kMaxFragment = kRingBytes / 4;
// Consumed bytes that the sender may not have been told of while nothing else is to be said. A fragment that does not
// fit before the ring's end begins at its start, and must find room there all the same.
inline constexpr std::size_t kMaxUntold = kRingBytes / 2;
static_assert(2 * kMaxFragment + kMaxUntold <= kRingBytes);
// Places for offers at the peer; offers that are not answered yet; the others may not have been looked at, as their
// messages came by the ring.
inline constexpr std::size_t kOffers = 64;
inline constexpr std::size_t kMaxOffered = 16;
// From here on a message between registered memory is offered a place and written there: the offer costs a write.
inline constexpr std::size_t kLargeBytes = 16 << 10;

inline constexpr std::uint64_t whole_granules(std::uint64_t bytes) {
  return (bytes + kGranule - 1) / kGranule * kGranule;
}

// Where a fragment of `bytes` begins when the one before ended at `end`.
inline constexpr std::uint64_t place_of(std::uint64_t end, std::size_t bytes) {
  return end % kRingBytes + bytes <= kRingBytes ? end : (end / kRingBytes + 1) * kRingBytes;
}

// --- the word that comes with a write: what it is, and the sender's credit to the receiver of the word, in granules
enum class Word : std::uint32_t { fragment = 0, credit = 1, offers = 2, placed = 3 };
inline constexpr std::uint32_t kCreditMask = (1u << 30) - 1;

inline constexpr std::uint32_t make_word(Word kind, std::uint64_t consumed) {
  return static_cast<std::uint32_t>(kind) << 30 | (static_cast<std::uint32_t>(consumed / kGranule) & kCreditMask);
}
inline constexpr Word kind_of(std::uint32_t word) { return static_cast<Word>(word >> 30); }
// `known`: what was consumed when last heard of.
inline constexpr std::uint64_t consumed_by(std::uint32_t word, std::uint64_t known) {
  const auto grown = (word - static_cast<std::uint32_t>(known / kGranule)) & kCreditMask;
  return known + std::uint64_t{grown} * kGranule;
}

// How a receiver wants a large message. 64 bytes, little-endian.
struct Offer {
  static constexpr std::size_t kBytes = 64;
  std::uint64_t message = 0;
  Tag tag;
  std::uint64_t bytes = 0;
  std::uint64_t address = 0;
  std::uint32_t remote_key = 0;
  bool by_ring = false;  // there is no place to write to: send it by the ring

  std::array<std::byte, kBytes> encode() const;
  static Offer decode(std::span<const std::byte, kBytes> bytes);
};

inline constexpr std::size_t kOffersAt = kRingBytes;
inline constexpr std::size_t kStaging = kOffersAt + kOffers * Offer::kBytes;
inline constexpr std::size_t kOfferStaging = kStaging + kRingBytes;
inline constexpr std::size_t kBlockBytes = (kOfferStaging + kOffers * Offer::kBytes + 4095) / 4096 * 4096;

static_assert(kMaxOffered + kRingBytes / kLargeBytes + 1 <= kOffers);

// Writes with a word that this end may not have polled: fragments of a full ring, offers, what is placed for this end's
// own offers, and credits, of which there is one each half ring.
inline constexpr std::uint32_t kArrivals = kRingBytes / kGranule + kOffers + kMaxOffered + 4;
inline constexpr std::uint32_t kWrites = 256;

}  // namespace tutti::internal::verbs
