// Keyed proofs and randomness (OpenSSL 3).
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace tutti::internal {

using Digest = std::array<std::byte, 32>;

// HMAC-SHA256 (RFC 2104). The key may be empty.
Digest hmac_sha256(std::string_view key, std::span<const std::byte> message);

// Takes the same time wherever the two differ.
bool equal_in_constant_time(const Digest& a, const Digest& b);

// Throws Error{system} when the system has no randomness to give.
Digest random_digest();

std::string to_hex(std::span<const std::byte> bytes);

// The bytes as a key.
inline std::string_view as_key(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

}  // namespace tutti::internal
