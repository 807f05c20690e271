// Header v1: what precedes every message on a byte stream. 64 bytes, little-endian, no padding.
//
//   offset size field
//        0    4 magic        0x54554931, the bytes "1IUT"
//        4    2 version      1
//        6    2 kind         0 data
//        8    8 communicator
//       16   16 tag          the call (sequence and fingerprint in one): types/call.h
//       32    8 message      number of this message on its channel, from 0
//       40    8 offset       of this fragment in its message, bytes
//       48    8 length       of this fragment, bytes
//       56    8 total        of the message, bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/transport.h"

namespace tutti::internal {

struct Header {
  static constexpr std::size_t kBytes = 64;
  static constexpr std::uint32_t kMagic = 0x54554931;
  static constexpr std::uint16_t kVersion = 1;

  std::uint64_t communicator = 0;
  Tag tag;
  std::uint64_t message = 0, offset = 0, length = 0, total = 0;

  std::array<std::byte, kBytes> encode() const;
  // Nothing when magic, version or kind are wrong, or offset + length exceeds total.
  static std::optional<Header> decode(std::span<const std::byte, kBytes> bytes);
};

}  // namespace tutti::internal
