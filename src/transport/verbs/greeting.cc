#include "transport/verbs/greeting.h"

#include <algorithm>
#include <cstring>

#include "base/little_endian.h"
#include "transport/verbs/layout.h"

namespace tutti::internal::verbs {
namespace {

constexpr std::uint32_t kMagic = 0x42525654;
constexpr std::uint32_t kRing = kRingBytes;
constexpr std::size_t kErrorTextAt = 64;

}  // namespace

std::array<std::byte, Greeting::kBytes> Greeting::encode() const {
  std::array<std::byte, kBytes> out{};
  put_le(&out[0], kMagic);
  put_le(&out[4], kRing);
  std::copy(address.begin(), address.end(), &out[8]);
  put_le(&out[48], block.address);
  put_le(&out[56], block.remote_key);
  std::memcpy(&out[kErrorTextAt], error_text.data(), std::min(error_text.size(), kBytes - kErrorTextAt));
  return out;
}

std::optional<Greeting> Greeting::decode(std::span<const std::byte, kBytes> in) {
  if (get_le<std::uint32_t>(&in[0]) != kMagic || get_le<std::uint32_t>(&in[4]) != kRing) return std::nullopt;
  Greeting greeting;
  std::copy_n(&in[8], greeting.address.size(), greeting.address.begin());
  greeting.block = {get_le<std::uint64_t>(&in[48]), get_le<std::uint32_t>(&in[56])};
  const char* const words = reinterpret_cast<const char*>(&in[kErrorTextAt]);
  greeting.error_text.assign(words, strnlen(words, kBytes - kErrorTextAt));
  return greeting;
}

}  // namespace tutti::internal::verbs
