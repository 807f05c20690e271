// A collective call packed into the 128 bits that travel with every message as its fingerprint. Nothing is hashed: two
// tags are equal exactly when the calls are, and a tag that arrives says what the peer called.
//
//   word 0: sequence 32 | collective 5 | dtype 5 | op 4 | order 2 | algorithm 8 | flags 8
//   word 1: count 48 | root 16; of a transfer, which has no root, the user's tag
#pragma once

#include <cstdint>
#include <string>

#include "tutti/types.h"
#include "types/tag.h"

namespace tutti::internal {

// What a caller asks for: the algorithm may still be open.
struct CallSpec {
  Collective collective = Collective::barrier;
  DType dtype = DType::uint8;
  Op op = Op::sum;
  Order order = Order::canonical;
  Algorithm algorithm = Algorithm::automatic;
  std::uint8_t flags = 0;
  int root = 0;
  std::uint64_t count = 0;
  friend bool operator==(const CallSpec&, const CallSpec&) = default;
};

// Flags of a call that does several all-reduces of one group of calls; in the place of the root is a digest of them.
inline constexpr std::uint8_t kFusedCalls = 3;
inline constexpr std::uint8_t kFirstCustomCall = 16;

// Throws Error{invalid_argument} for what no communicator of so many ranks can do, whatever the algorithm.
void check(const CallSpec& spec, int ranks);

struct Call {
  std::uint32_t sequence = 0;  // of this communicator, from 1
  Collective collective = Collective::barrier;
  DType dtype = DType::uint8;
  Op op = Op::sum;
  Order order = Order::canonical;
  Algorithm algorithm = Algorithm::automatic;
  std::uint8_t flags = 0;  // 0: a user's; 1: split, 2: allocate, kFusedCalls, 4: make_operator; from kFirstCustomCall
                           // on: a user's call of the custom operator 1, 2, …
  std::uint64_t count = 0;
  std::uint16_t root = 0;

  Tag pack() const;
  static Tag numbered(Tag tag, std::uint32_t sequence) {  // of a tag packed with sequence 0
    tag.word[0] |= std::uint64_t{sequence} << 32;
    return tag;
  }
  static Tag labelled(Tag tag, std::uint16_t label) {  // of a tag packed with root 0
    tag.word[1] |= label;
    return tag;
  }
  static Call unpack(const Tag& tag);
};

// splitmix64's finaliser (Steele, Lea, Flood 2014).
inline std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// "all_reduce #412 (float32 x 1048576, sum)"; a broadcast names its root, a forced algorithm or order is named too.
std::string describe(const Call& call);
std::string describe_kind(const Call& call);  // "all_reduce (float32 x 1048576, sum)"

}  // namespace tutti::internal
