// What the two ends of a channel tell each other over their socket before the first write: 384 bytes each way, then one
// byte once that end is joined and takes writes. Little-endian.
//
//   offset size field
//        0    4 magic        0x42525654, the bytes "TVRB"
//        4    4 ring         kRingBytes: the two must agree
//        8   40 address      of the queue pair
//       48    8 block        address of the registered block
//       56    4 key          its remote key
//       60    4 -
//       64  320 error_text   why this end cannot be joined, in words; empty if it can
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "transport/verbs/fabric.h"

namespace tutti::internal::verbs {

struct Greeting {
  static constexpr std::size_t kBytes = 384;
  static constexpr std::byte kJoined{1};

  QueuePair::Address address{};
  Place block{};
  std::string error_text;

  std::array<std::byte, kBytes> encode() const;
  // Nothing where it is no greeting, or of an end that counts its ring otherwise.
  static std::optional<Greeting> decode(std::span<const std::byte, kBytes> bytes);
};

}  // namespace tutti::internal::verbs
