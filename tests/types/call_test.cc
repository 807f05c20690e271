#include "types/call.h"

#include <gtest/gtest.h>

#include <random>

namespace tutti::internal {
namespace {

void expect_round_trip(const Call& call) {
  const Call back = Call::unpack(call.pack());
  EXPECT_EQ(back.sequence, call.sequence);
  EXPECT_EQ(back.collective, call.collective);
  EXPECT_EQ(back.dtype, call.dtype);
  EXPECT_EQ(back.op, call.op);
  EXPECT_EQ(back.order, call.order);
  EXPECT_EQ(back.algorithm, call.algorithm);
  EXPECT_EQ(back.flags, call.flags);
  EXPECT_EQ(back.count, call.count);
  EXPECT_EQ(back.root, call.root);
}

const Call kWidest{0xffffffff, Collective::barrier,          DType::boolean, Op::bxor,
                   Order::any, static_cast<Algorithm>(0xff), 0xff,           (std::uint64_t{1} << 48) - 1,
                   0xffff};

TEST(Call, PackedAndUnpackedIsTheSame) {
  expect_round_trip({});
  expect_round_trip(kWidest);
  std::mt19937 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto below = [&](unsigned n) { return random() % n; };
    Call call{static_cast<std::uint32_t>(random()),
              static_cast<Collective>(below(5)),
              static_cast<DType>(below(13)),
              static_cast<Op>(below(8)),
              static_cast<Order>(below(2)),
              static_cast<Algorithm>(below(256)),
              static_cast<std::uint8_t>(below(256)),
              std::uint64_t{random()} << below(16),
              static_cast<std::uint16_t>(below(65536))};
    if (call.flags == kFusedCalls) {  // what is left of the word is a digest's
      call.count &= kFusedCountMask;
      call.root = 0;
    }
    expect_round_trip(call);
  }
}

// Whatever the digest is, and two of them make two tags.
TEST(Call, OfFusedCallsTheCountStandsBesideADigest) {
  for (const std::uint64_t count : {std::uint64_t{2}, std::uint64_t{65536}}) {
    const Call call{.sequence = 3, .collective = Collective::all_reduce, .flags = kFusedCalls, .count = count};
    const auto labelled = [&](std::uint64_t digest) {
      return Call::labelled(call.pack(), Call::label_of_fused(digest));
    };
    for (const std::uint64_t digest : {std::uint64_t{0}, std::uint64_t{0xffffffffffffffff}, std::uint64_t{1} << 40}) {
      const Call back = Call::unpack(labelled(digest));
      EXPECT_EQ(back.count, count);
      EXPECT_EQ(back.root, 0);
      EXPECT_EQ(describe(back),
                "all_reduce #3 (uint8 x " + std::to_string(count) + ", sum, several calls of one group)")
          << digest;
    }
    for (const int bit : {0, 15, 33, 63}) EXPECT_NE(labelled(0), labelled(std::uint64_t{1} << bit)) << bit;
  }
}

TEST(Call, EveryFieldMakesAnotherTag) {
  const Call base{7, Collective::all_reduce, DType::float32, Op::sum, Order::canonical, Algorithm::automatic, 0, 100,
                  0};
  const auto differs = [&](auto change) {
    Call other = base;
    change(other);
    EXPECT_NE(other.pack(), base.pack());
  };
  differs([](Call& c) { c.sequence = 8; });
  differs([](Call& c) { c.collective = Collective::broadcast; });
  differs([](Call& c) { c.dtype = DType::float64; });
  differs([](Call& c) { c.op = Op::max; });
  differs([](Call& c) { c.order = Order::any; });
  differs([](Call& c) { c.algorithm = Algorithm::ring; });
  differs([](Call& c) { c.flags = 2; });
  differs([](Call& c) { c.count = 101; });
  differs([](Call& c) { c.root = 1; });
}

TEST(Call, IsDescribedForAPerson) {
  EXPECT_EQ(describe({412, Collective::all_reduce, DType::float32, Op::sum, Order::canonical, Algorithm::automatic, 0,
                      1048576, 0}),
            "all_reduce #412 (float32 x 1048576, sum)");
  EXPECT_EQ(describe({3, Collective::broadcast, DType::uint8, Op::sum, Order::canonical, Algorithm::chain, 0, 5, 2}),
            "broadcast #3 (uint8 x 5, root 2, chain)");
  EXPECT_EQ(describe({1, Collective::reduce_scatter, DType::float64, Op::avg, Order::any, Algorithm::ring, 0, 9, 0}),
            "reduce_scatter #1 (float64 x 9, avg, ring, order any)");
  EXPECT_EQ(describe({2, Collective::all_gather, DType::int64}), "all_gather #2 (int64 x 0)");
  EXPECT_EQ(describe({7, Collective::barrier}), "barrier #7");
  EXPECT_EQ(describe({8, Collective::all_gather, DType::int32, Op::sum, Order::canonical, Algorithm::automatic, 1, 2}),
            "split #8");
  EXPECT_EQ(
      describe({9, Collective::all_gather, DType::uint8, Op::sum, Order::canonical, Algorithm::automatic, 2, 4096}),
      "allocate #9 (4096 bytes)");
  EXPECT_EQ(
      describe({10, Collective::all_gather, DType::uint64, Op::sum, Order::canonical, Algorithm::automatic, 4, 8}),
      "make_operator #10");
  EXPECT_EQ(describe({11, Collective::scan, DType::int32, Op::custom, Order::canonical, Algorithm::automatic, 16, 5}),
            "scan #11 (int32 x 5, custom 1)");
  EXPECT_EQ(describe({.sequence = 4, .collective = Collective::all_gather, .flags = kUnequalRows, .count = 24}),
            "all_gather_v #4 (uint8 x 24 in all)");
  EXPECT_EQ(describe({.sequence = 5, .collective = Collective::all_to_all, .flags = kUnequalRows}),
            "all_to_all_v #5 (uint8)");
  EXPECT_EQ(describe({}), "no call");
}

TEST(Call, AnyTagThatArrivesCanBeDescribed) {
  std::mt19937_64 random(2);
  for (int i = 0; i < 1000; ++i) EXPECT_FALSE(describe(Call::unpack(Tag{{random(), random()}})).empty());
}

TEST(Algorithm, HasOneNumberAndOneNameThatIsReadBack) {
  EXPECT_EQ(to_string(Algorithm::automatic), "auto");
  EXPECT_EQ(parse_algorithm("auto"), Algorithm::automatic);
  EXPECT_EQ(to_string(Algorithm::ring), "ring") << "which three collectives have";
  std::size_t number = 0;
  for (const Algorithm algorithm : all_algorithms()) {
    EXPECT_EQ(static_cast<std::size_t>(algorithm), ++number);
    EXPECT_EQ(parse_algorithm(to_string(algorithm)), algorithm) << to_string(algorithm);
  }
  EXPECT_EQ(to_string(static_cast<Algorithm>(number + 1)), kNoName);
  EXPECT_EQ(parse_algorithm("no_such_algorithm"), std::nullopt);
}

}  // namespace
}  // namespace tutti::internal
