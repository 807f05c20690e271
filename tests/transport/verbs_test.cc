// What two ends of a verbs channel must agree on (layout.h, greeting.h), and the memory that a rank has registered.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "transport/fake_fabric.h"
#include "transport/verbs/greeting.h"
#include "transport/verbs/layout.h"
#include "transport/verbs/registry.h"
#include "tutti/error.h"

namespace tutti::internal::verbs {
namespace {

// --- layout.h --------------------------------------------------------------------------------------------------------

TEST(VerbsLayout, GranulesAreRoundedUp) {
  EXPECT_EQ(whole_granules(0), 0u);
  EXPECT_EQ(whole_granules(1), kGranule);
  EXPECT_EQ(whole_granules(kGranule), kGranule);
  EXPECT_EQ(whole_granules(kGranule + 1), 2 * kGranule);
}

TEST(VerbsLayout, AFragmentThatWouldCrossTheRingsEndBeginsAgainAtItsStart) {
  EXPECT_EQ(place_of(0, kMaxFragment), 0u);
  EXPECT_EQ(place_of(kRingBytes - kMaxFragment, kMaxFragment), kRingBytes - kMaxFragment);
  EXPECT_EQ(place_of(kRingBytes - kMaxFragment, kMaxFragment + 1), kRingBytes);
  EXPECT_EQ(place_of(kRingBytes - kGranule, kGranule), kRingBytes - kGranule);
  EXPECT_EQ(place_of(kRingBytes - kGranule, kGranule + 1), kRingBytes);
  EXPECT_EQ(place_of(kRingBytes, 1), kRingBytes);
  EXPECT_EQ(place_of(5 * kRingBytes - kGranule, 2 * kGranule), 5 * kRingBytes);
}

TEST(VerbsLayout, FragmentsLieInOnePieceAtAGranuleAndWasteLessThanTheirOwnLength) {
  std::mt19937_64 random(1);
  for (std::uint64_t end = (std::uint64_t{1} << 40) / kGranule * kGranule, i = 0; i < 10'000; ++i) {
    const std::size_t bytes = random() % (kMaxFragment + 1);
    const std::uint64_t at = place_of(end, bytes);
    ASSERT_EQ(at % kGranule, 0u);
    ASSERT_LE(at % kRingBytes + bytes, kRingBytes);
    ASSERT_TRUE(at == end || at - end < bytes);
    end = at + whole_granules(bytes);
  }
}

TEST(VerbsLayout, AWordSaysItsKindAndTheCredit) {
  for (const Word kind : {Word::fragment, Word::credit, Word::offers, Word::placed}) {
    for (const std::uint64_t consumed : {std::uint64_t{0}, 7 * kGranule, kCreditMask * std::uint64_t{kGranule}}) {
      const std::uint32_t word = make_word(kind, consumed);
      EXPECT_EQ(kind_of(word), kind);
      EXPECT_EQ(consumed_by(word, 0), consumed);
    }
  }
}

// The word has 30 bits for the granules, which a fast link counts through within a minute.
TEST(VerbsLayout, CreditIsUnderstoodAcrossTheCountersEnd) {
  constexpr std::uint64_t kTurn = (std::uint64_t{1} << 30) * kGranule;
  for (const std::uint64_t turn : {kTurn, 2 * kTurn, 1000 * kTurn}) {
    for (const std::uint64_t before : {std::uint64_t{0}, std::uint64_t{kGranule}, std::uint64_t{kRingBytes}}) {
      for (const std::uint64_t grown : {std::uint64_t{0}, std::uint64_t{kGranule}, std::uint64_t{kRingBytes} * 2}) {
        const std::uint64_t known = turn - before;
        EXPECT_EQ(consumed_by(make_word(Word::placed, known + grown), known), known + grown);
      }
    }
  }
}

TEST(VerbsLayout, AnOfferArrivesAsItWasMade) {
  Offer offer;
  offer.message = 0x0102030405060708;
  offer.tag = {{~0ull, 0x1122334455667788}};
  offer.bytes = 1ull << 41;
  offer.address = 0x7f0123456789abcd;
  offer.remote_key = 0xfedcba98;
  for (const bool by_ring : {false, true}) {
    offer.by_ring = by_ring;
    const auto bytes = offer.encode();
    EXPECT_EQ(bytes[0], std::byte{8}) << "little-endian";
    const Offer arrived = Offer::decode(bytes);
    EXPECT_EQ(arrived.message, offer.message);
    EXPECT_EQ(arrived.tag, offer.tag);
    EXPECT_EQ(arrived.bytes, offer.bytes);
    EXPECT_EQ(arrived.address, offer.address);
    EXPECT_EQ(arrived.remote_key, offer.remote_key);
    EXPECT_EQ(arrived.by_ring, by_ring);
  }
}

TEST(VerbsLayout, TheBlockHoldsItsFourPartsInWholePages) {
  constexpr std::size_t kOfferBytes = kOffers * Offer::kBytes;
  EXPECT_EQ(kOffersAt, kRingBytes);
  EXPECT_EQ(kStaging, kOffersAt + kOfferBytes);
  EXPECT_EQ(kOfferStaging, kStaging + kRingBytes);
  EXPECT_GE(kBlockBytes, kOfferStaging + kOfferBytes);
  EXPECT_LT(kBlockBytes, kOfferStaging + kOfferBytes + 4096);
  EXPECT_EQ(kBlockBytes % 4096, 0u);
  EXPECT_EQ(kStaging % kGranule, 0u) << "a fragment lies alike at both ends";
}

TEST(VerbsLayout, ThereIsARequestForEveryWordThatMayBeUnderWay) {
  const std::size_t fragments = kRingBytes / kGranule, credits = 2 * (kRingBytes / (kRingBytes / 2));
  EXPECT_EQ(kArrivals, fragments + kOffers + kMaxOffered + credits);
}

// --- greeting.h ------------------------------------------------------------------------------------------------------

Greeting greeting() {
  Greeting greeting;
  for (std::size_t i = 0; i < greeting.address.size(); ++i) greeting.address[i] = static_cast<std::byte>(i + 100);
  greeting.block = {0x7f0000001000, 0xabcdef01};
  return greeting;
}

TEST(VerbsGreeting, ArrivesAsItWasMade) {
  Greeting sent = greeting();
  for (const std::string& error_text : {std::string(), std::string("cannot register")}) {
    sent.error_text = error_text;
    const auto arrived = Greeting::decode(sent.encode());
    ASSERT_TRUE(arrived);
    EXPECT_EQ(arrived->address, sent.address);
    EXPECT_EQ(arrived->block.address, sent.block.address);
    EXPECT_EQ(arrived->block.remote_key, sent.block.remote_key);
    EXPECT_EQ(arrived->error_text, error_text);
  }
}

TEST(VerbsGreeting, LiesAsItsTableSays) {
  const auto bytes = greeting().encode();
  EXPECT_EQ(std::memcmp(bytes.data(), "TVRB", 4), 0);
  EXPECT_EQ(bytes[4] | bytes[5], std::byte{0});
  EXPECT_EQ(bytes[6], std::byte{kRingBytes >> 16});
  EXPECT_EQ(bytes[8], std::byte{100});
  EXPECT_EQ(bytes[47], std::byte{139});
  EXPECT_EQ(bytes[49], std::byte{0x10});
  EXPECT_EQ(bytes[56], std::byte{0x01});
  EXPECT_EQ(bytes[59], std::byte{0xab});
}

TEST(VerbsGreeting, AnotherMagicOrAnotherRingIsNone) {
  for (std::size_t at = 0; at < 8; ++at) {
    auto bytes = greeting().encode();
    bytes[at] ^= std::byte{1};
    EXPECT_FALSE(Greeting::decode(bytes)) << at;
  }
  EXPECT_FALSE(Greeting::decode(std::array<std::byte, Greeting::kBytes>{}));
}

TEST(VerbsGreeting, WordsThatAreTooLongAreCut) {
  Greeting sent = greeting();
  for (const std::size_t length : {319u, 320u, 321u, 5000u}) {
    sent.error_text = std::string(length, 'x');
    const auto arrived = Greeting::decode(sent.encode());
    ASSERT_TRUE(arrived);
    EXPECT_EQ(arrived->error_text, std::string(std::min<std::size_t>(length, 320), 'x'));
    EXPECT_EQ(arrived->block.remote_key, sent.block.remote_key);
  }
}

// --- registry.h ------------------------------------------------------------------------------------------------------

class VerbsRegistry : public testing::Test {
 protected:
  bool finds(std::size_t from, std::size_t bytes) const {
    return registry_->find(memory_.data() + from, bytes) != nullptr;
  }

  std::shared_ptr<FakeNetwork> network_ = make_fake_network();
  std::shared_ptr<Fabric> fabric_ = make_fake_fabric(network_, {.most_registered = 1000});
  std::unique_ptr<Registry> registry_ = std::make_unique<Registry>(fabric_);
  std::vector<std::byte> memory_ = std::vector<std::byte>(1000);
};

TEST_F(VerbsRegistry, FindsWhatLiesInsideAndNothingThatCrossesAnEnd) {
  const auto token = registry_->add(memory_.data() + 100, 200);
  ASSERT_NE(token, nullptr);  // who keeps memory registered asks whether there is something to keep
  EXPECT_TRUE(finds(100, 200));
  EXPECT_TRUE(finds(100, 1));
  EXPECT_TRUE(finds(299, 1));
  EXPECT_TRUE(finds(150, 20));
  EXPECT_FALSE(finds(99, 1));
  EXPECT_FALSE(finds(99, 2));
  EXPECT_FALSE(finds(100, 201));
  EXPECT_FALSE(finds(299, 2));
  EXPECT_FALSE(finds(300, 1));
  EXPECT_FALSE(finds(150, ~std::size_t{0})) << "an end beyond all memory";
}

TEST_F(VerbsRegistry, NeighboursAreNotOneRegion) {
  const auto first = registry_->add(memory_.data(), 100), second = registry_->add(memory_.data() + 100, 100);
  EXPECT_TRUE(finds(0, 100));
  EXPECT_TRUE(finds(100, 100));
  EXPECT_FALSE(finds(99, 2));
}

TEST_F(VerbsRegistry, OfRegionsThatOverlapAnyThatHoldsAllWillDo) {
  auto large = registry_->add(memory_.data(), 500), small = registry_->add(memory_.data() + 100, 50);
  auto twin = registry_->add(memory_.data() + 100, 60);
  EXPECT_TRUE(finds(120, 10));
  EXPECT_TRUE(finds(120, 40)) << "the twin, or the large one";
  EXPECT_TRUE(finds(120, 300)) << "the large one, although two begin nearer";
  large.reset();
  EXPECT_TRUE(finds(120, 40));
  EXPECT_FALSE(finds(120, 41));
  EXPECT_FALSE(finds(0, 1));
  twin.reset();
  EXPECT_TRUE(finds(120, 30));
  EXPECT_FALSE(finds(120, 31));
  small.reset();
  EXPECT_FALSE(finds(120, 1));
}

TEST_F(VerbsRegistry, WhatIsInUseStaysRegisteredWithoutItsToken) {
  auto token = registry_->add(memory_.data(), 1000);
  auto in_use = registry_->find(memory_.data() + 10, 20);
  ASSERT_NE(in_use, nullptr);
  token.reset();
  EXPECT_FALSE(finds(10, 20)) << "nobody else gets it";
  EXPECT_THROW(registry_->add(memory_.data(), 1), Error) << "all that may be registered still is";
  in_use.reset();
  EXPECT_NO_THROW(registry_->add(memory_.data(), 1000));
}

TEST_F(VerbsRegistry, ATokenMayOutliveItsRegistry) {
  auto token = registry_->add(memory_.data(), 1000);
  registry_.reset();
  EXPECT_THROW(fabric_->register_memory(memory_.data(), 1), Error);
  token.reset();
  EXPECT_NE(fabric_->register_memory(memory_.data(), 1000), nullptr);
}

TEST_F(VerbsRegistry, WhatCannotBeRegisteredLeavesNothingBehind) {
  EXPECT_THROW(registry_->add(memory_.data(), 1001), Error);
  EXPECT_FALSE(finds(0, 1));
  EXPECT_NO_THROW(registry_->add(memory_.data(), 1000));
}

}  // namespace
}  // namespace tutti::internal::verbs
