#include "transport/verbs/greeting.h"

#include <algorithm>
#include <cstring>

#include "transport/verbs/layout.h"

namespace tutti::verbs {
namespace {

constexpr std::uint32_t kMagic = 0x42525654;
constexpr std::size_t kTroubleAt = 64;

void put(std::byte* at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::byte>(value >> (8 * i));
}
std::uint64_t get(const std::byte* at, std::size_t bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= static_cast<std::uint64_t>(at[i]) << (8 * i);
  return value;
}

}  // namespace

std::array<std::byte, Greeting::kBytes> Greeting::encode() const {
  std::array<std::byte, kBytes> out{};
  put(&out[0], kMagic, 4);
  put(&out[4], kRingBytes, 4);
  std::copy(address.begin(), address.end(), &out[8]);
  put(&out[48], block.address, 8);
  put(&out[56], block.remote_key, 4);
  std::memcpy(&out[kTroubleAt], trouble.data(), std::min(trouble.size(), kBytes - kTroubleAt));
  return out;
}

std::optional<Greeting> Greeting::decode(std::span<const std::byte, kBytes> in) {
  if (get(&in[0], 4) != kMagic || get(&in[4], 4) != kRingBytes) return std::nullopt;
  Greeting greeting;
  std::copy_n(&in[8], greeting.address.size(), greeting.address.begin());
  greeting.block = {get(&in[48], 8), static_cast<std::uint32_t>(get(&in[56], 4))};
  const char* const words = reinterpret_cast<const char*>(&in[kTroubleAt]);
  greeting.trouble.assign(words, strnlen(words, kBytes - kTroubleAt));
  return greeting;
}

}  // namespace tutti::verbs
