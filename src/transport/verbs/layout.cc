#include "transport/verbs/layout.h"

#include "base/little_endian.h"

namespace tutti::internal::verbs {

std::array<std::byte, Offer::kBytes> Offer::encode() const {
  std::array<std::byte, kBytes> out{};
  put_le(&out[0], message);
  put_le(&out[8], tag.word[0]);
  put_le(&out[16], tag.word[1]);
  put_le(&out[24], bytes);
  put_le(&out[32], address);
  put_le(&out[40], remote_key);
  put_le(&out[48], std::uint64_t{by_ring});
  return out;
}

Offer Offer::decode(std::span<const std::byte, kBytes> in) {
  Offer offer;
  offer.message = get_le<std::uint64_t>(&in[0]);
  offer.tag.word = {get_le<std::uint64_t>(&in[8]), get_le<std::uint64_t>(&in[16])};
  offer.bytes = get_le<std::uint64_t>(&in[24]);
  offer.address = get_le<std::uint64_t>(&in[32]);
  offer.remote_key = get_le<std::uint32_t>(&in[40]);
  offer.by_ring = get_le<std::uint64_t>(&in[48]) != 0;
  return offer;
}

}  // namespace tutti::internal::verbs
