// A collective call packed into the 128 bits that travel with every message as its fingerprint. Nothing is hashed: two
// tags are equal exactly when the calls are, but for the lengths of unequal rows and the counts of fused calls, and a
// tag that arrives says what the peer called.
//
//   word 0: sequence 32 | collective 5 | dtype 5 | op 4 | order 2 | algorithm 8 | flags 8
//   word 1: count 48 | root 16; of a transfer, which has no root, the user's tag
#pragma once

#include <cstdint>
#include <string>

#include "tutti/types.h"
#include "types/call_rows.h"
#include "types/tag.h"

namespace tutti::internal {

// What an internal call is for, or a user's call is.
inline constexpr std::uint8_t kSplit = 1, kAllocate = 2;
inline constexpr std::uint8_t kUnequalRows = 3;  // the rows have lengths of their own (CallSpec::rows)
inline constexpr std::uint8_t kMakeOperator = 4;
// It does several all-reduces of one group of calls. Its count has 17 bits; a digest of theirs fills the rest of
// word 1.
inline constexpr std::uint8_t kFusedCalls = 5;
inline constexpr std::uint64_t kFusedCountMask = (1 << 17) - 1;
inline constexpr std::uint8_t kFirstCustomCall = 16;

// What a caller asks for: the algorithm may still be open.
struct CallSpec {
  Collective collective = Collective::barrier;
  DType dtype = DType::uint8;
  Op op = Op::sum;
  Order order = Order::canonical;
  Algorithm algorithm = Algorithm::automatic;
  std::uint8_t flags = 0;
  int root = 0;
  // Of each row. Of unequal rows: of all together, if every rank knows them all (shows_all_rows()); else 0.
  std::uint64_t count = 0;
  const CallRows* rows = nullptr;  // if flags == kUnequalRows; outlives the making of the call's plan

  // Without the rows.
  friend bool operator==(const CallSpec& a, const CallSpec& b) {
    return a.collective == b.collective && a.dtype == b.dtype && a.op == b.op && a.order == b.order &&
           a.algorithm == b.algorithm && a.flags == b.flags && a.root == b.root && a.count == b.count;
  }
};

// Throws Error{invalid_argument} for what no communicator of so many ranks can do, whatever the algorithm.
void check(const CallSpec& spec, int ranks);

struct Call {
  std::uint32_t sequence = 0;  // of this communicator, from 1
  Collective collective = Collective::barrier;
  DType dtype = DType::uint8;
  Op op = Op::sum;
  Order order = Order::canonical;
  Algorithm algorithm = Algorithm::automatic;
  std::uint8_t flags =
      0;  // 0, or one of the above; from kFirstCustomCall on: a user's call of the custom operator 1, …
  std::uint64_t count = 0;
  std::uint16_t root = 0;

  Tag pack() const;
  static Tag numbered(Tag tag, std::uint32_t sequence) {  // of a tag packed with sequence 0
    tag.word[0] |= std::uint64_t{sequence} << 32;
    return tag;
  }
  // Of a tag packed with root 0: a transfer's, or one with kFusedCalls.
  static Tag labelled(Tag tag, std::uint64_t label) {
    tag.word[1] |= label;
    return tag;
  }
  // What of a digest fits beside the count of fused calls.
  static std::uint64_t label_of_fused(std::uint64_t digest) { return digest & ~(kFusedCountMask << 16); }
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
