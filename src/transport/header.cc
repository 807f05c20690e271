#include "transport/header.h"

namespace tutti {
namespace {

constexpr std::uint16_t kData = 0;

// Integers are taken apart byte by byte, so that the format does not depend on the machine; compilers make it one
// store.
template <class T>
void put(std::byte* at, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T get(const std::byte* at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= static_cast<T>(static_cast<T>(at[i]) << (8 * i));
  return value;
}

}  // namespace

std::array<std::byte, Header::kBytes> Header::encode() const {
  std::array<std::byte, kBytes> bytes;
  put<std::uint32_t>(&bytes[0], kMagic);
  put<std::uint16_t>(&bytes[4], kVersion);
  put<std::uint16_t>(&bytes[6], kData);
  put<std::uint64_t>(&bytes[8], communicator);
  put<std::uint64_t>(&bytes[16], tag.word[0]);
  put<std::uint64_t>(&bytes[24], tag.word[1]);
  put<std::uint64_t>(&bytes[32], message);
  put<std::uint64_t>(&bytes[40], offset);
  put<std::uint64_t>(&bytes[48], length);
  put<std::uint64_t>(&bytes[56], total);
  return bytes;
}

std::optional<Header> Header::decode(std::span<const std::byte, kBytes> bytes) {
  if (get<std::uint32_t>(&bytes[0]) != kMagic || get<std::uint16_t>(&bytes[4]) != kVersion ||
      get<std::uint16_t>(&bytes[6]) != kData) {
    return std::nullopt;
  }
  Header header;
  header.communicator = get<std::uint64_t>(&bytes[8]);
  header.tag.word = {get<std::uint64_t>(&bytes[16]), get<std::uint64_t>(&bytes[24])};
  header.message = get<std::uint64_t>(&bytes[32]);
  header.offset = get<std::uint64_t>(&bytes[40]);
  header.length = get<std::uint64_t>(&bytes[48]);
  header.total = get<std::uint64_t>(&bytes[56]);
  if (header.length > header.total || header.offset > header.total - header.length) return std::nullopt;
  return header;
}

}  // namespace tutti
