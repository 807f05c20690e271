#include "transport/header.h"

#include "base/little_endian.h"

namespace tutti::internal {
namespace {

constexpr std::uint16_t kData = 0;

}  // namespace

std::array<std::byte, Header::kBytes> Header::encode() const {
  std::array<std::byte, kBytes> bytes;
  put_le(&bytes[0], kMagic);
  put_le(&bytes[4], kVersion);
  put_le(&bytes[6], kData);
  put_le(&bytes[8], communicator);
  put_le(&bytes[16], tag.word[0]);
  put_le(&bytes[24], tag.word[1]);
  put_le(&bytes[32], message);
  put_le(&bytes[40], offset);
  put_le(&bytes[48], length);
  put_le(&bytes[56], total);
  return bytes;
}

std::optional<Header> Header::decode(std::span<const std::byte, kBytes> bytes) {
  if (get_le<std::uint32_t>(&bytes[0]) != kMagic || get_le<std::uint16_t>(&bytes[4]) != kVersion ||
      get_le<std::uint16_t>(&bytes[6]) != kData) {
    return std::nullopt;
  }
  Header header;
  header.communicator = get_le<std::uint64_t>(&bytes[8]);
  header.tag.word = {get_le<std::uint64_t>(&bytes[16]), get_le<std::uint64_t>(&bytes[24])};
  header.message = get_le<std::uint64_t>(&bytes[32]);
  header.offset = get_le<std::uint64_t>(&bytes[40]);
  header.length = get_le<std::uint64_t>(&bytes[48]);
  header.total = get_le<std::uint64_t>(&bytes[56]);
  if (header.length > header.total || header.offset > header.total - header.length) return std::nullopt;
  return header;
}

}  // namespace tutti::internal
