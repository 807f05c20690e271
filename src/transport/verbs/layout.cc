#include "transport/verbs/layout.h"

namespace tutti::verbs {
namespace {

void put(std::byte*& at, std::uint64_t value) {
  for (int i = 0; i < 8; ++i) *at++ = static_cast<std::byte>(value >> (8 * i));
}
std::uint64_t get(const std::byte*& at) {
  std::uint64_t value = 0;
  for (int i = 0; i < 8; ++i) value |= static_cast<std::uint64_t>(*at++) << (8 * i);
  return value;
}

}  // namespace

std::array<std::byte, Offer::kBytes> Offer::encode() const {
  std::array<std::byte, kBytes> out{};
  std::byte* at = out.data();
  for (const std::uint64_t value :
       {message, tag.word[0], tag.word[1], bytes, address, std::uint64_t{remote_key}, std::uint64_t{by_ring}})
    put(at, value);
  return out;
}

Offer Offer::decode(std::span<const std::byte, kBytes> in) {
  const std::byte* at = in.data();
  Offer offer;
  offer.message = get(at);
  offer.tag.word = {get(at), get(at)};
  offer.bytes = get(at);
  offer.address = get(at);
  offer.remote_key = static_cast<std::uint32_t>(get(at));
  offer.by_ring = get(at) != 0;
  return offer;
}

}  // namespace tutti::verbs
