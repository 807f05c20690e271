#pragma once

#include <array>
#include <cstdint>

namespace tutti::internal {

// What a message belongs to: the call it was made for, packed (types/call.h). Two ranks that make the same call have
// equal tags; a transport compares them before any byte of user memory is touched, and throws TagMismatch.
struct Tag {
  std::array<std::uint64_t, 2> word{};
  friend bool operator==(const Tag&, const Tag&) = default;
};

}  // namespace tutti::internal
