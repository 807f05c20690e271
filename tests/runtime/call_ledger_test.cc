#include "runtime/call_ledger.h"

#include <gtest/gtest.h>

#include <string>

namespace tutti::internal {
namespace {

Tag kind(std::uint64_t count) {
  return Call{.collective = Collective::all_reduce, .dtype = DType::float32, .count = count}.pack();
}

// The account of a rank whose calls are of kinds 'a', 'b', ...
CallAccount account_of(const std::string& calls) {
  CallLedger ledger;
  for (const char c : calls) {
    const std::uint32_t sequence = ledger.number_next();
    ledger.begin_kind(sequence, kind(static_cast<std::uint64_t>(c)));
    ledger.enter(sequence);
    ledger.complete(sequence);
  }
  EXPECT_EQ(ledger.count(), calls.size());
  return ledger.account();
}

TEST(CallLedger, RanksThatMadeTheSameCallsHaveOneAccount) {
  for (const std::string calls : {"", "a", "aa", "ab", "aab", "abab", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaab"})
    EXPECT_EQ(account_of(calls), account_of(calls)) << calls;
}

TEST(CallLedger, CallsThatDifferMakeAccountsThatDiffer) {
  const std::string all[] = {"",    "a",   "b",   "aa",  "ab",  "ba",   "bb",  "aab",
                             "aba", "baa", "abb", "bab", "bba", "aabb", "abab"};
  for (const std::string& mine : all)
    for (const std::string& theirs : all)
      if (mine != theirs) {
        EXPECT_NE(account_of(mine), account_of(theirs)) << mine << " " << theirs;
      }
}

TEST(CallLedger, TheLastCallIsNamed) {
  EXPECT_EQ(account_of("").last, Tag{});
  EXPECT_EQ(account_of("aab").last, Call::numbered(kind('b'), 3));
}

TEST(CallLedger, PeersThatAskAreToldWhichCallThisRankIsIn) {
  CallLedger ledger;
  const std::uint32_t sequence = ledger.number_next();
  Tag tag;
  EXPECT_FALSE(ledger.history()->at(sequence, tag));
  ledger.begin_kind(sequence, kind(5));
  ledger.enter(sequence);
  ASSERT_TRUE(ledger.history()->at(sequence, tag));
  EXPECT_EQ(tag, Call::numbered(kind(5), 1));
  EXPECT_EQ(ledger.history()->last_completed(), Tag{});
  ledger.complete(sequence);
  EXPECT_EQ(ledger.history()->last_completed(), tag);
}

}  // namespace
}  // namespace tutti::internal
