#include "selection/choose.h"

#include <algorithm>

#include "collectives/catalogue.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kKiB = 1024;
// A piece that stays in a core's L2 with its destination. Not of a broadcast by 2 ranks of one host with a core each:
// nobody passes a piece on, and both ranks copy half of the whole, if both map it. Zen 4, us, in such pieces and in
// one: 4 MiB 140 and 130, 16 MiB 800 and 710; symmetric 1 MiB 14.8 and 12.5, 4 MiB 63 and 48; between cores that share
// no cache 25.8 and 14.2, 110 and 51. Not measured on other processors, nor where devices have a part in it.
constexpr std::size_t kChunkBytes = 128 * kKiB;
// The pieces of what combines stay in the caches all ranks' inputs and outputs together, and in the kernel's on their
// way: over TCP 16 MiB took 10.8 ms in one piece, 6.7 in pieces of 1 MiB, 7.7 of 512 KiB, 8.5 of 256 KiB.
constexpr std::size_t kCombinedChunkBytes = 1024 * kKiB;
// Two ranks of one host: half of it is a fragment of the ring, so what is combined of it is soon with the peer. Own
// buffers, 2 MiB: 128 us in pieces of 1 MiB, 116 of 256 KiB; over TCP 1 MiB 290 and 233; symmetric ones 46 and 48. On a
// Zen 4 5 MiB 524 and 445, 8 MiB 1011 and 934, 16 MiB 2690 and 2460; between cores that share no cache 5 MiB 855 and
// 482, 8 MiB 1570 and 991, 16 MiB 3070 and 2780. Measured up to 32 MiB, and not where devices have a part in it.
constexpr std::size_t kPairChunkBytes = 256 * kKiB;
// Ranks read one copy of it at the same time, while the root makes the next. 4 ranks on 2 cores, 4 MiB: 204 to 296 us
// in pieces of 128 KiB, 197 to 305 of 256 KiB; symmetric 172 to 202 and 158 to 163.
constexpr std::size_t kSharedChunkBytes = 256 * kKiB;
constexpr std::size_t kFragmentBytes = 64 * kKiB;  // of a slice: what one pass writes to all peers' rings
// Two ranks of a host that exchange pieces write each where they have read one, so what they touch stays in the caches.
// But a rank keeps at most seven such places: so it is only a few pieces ahead. Of a slice, and how many: us, by turns,
// as it was (pieces of 64 KiB, all sent before any is awaited), and with pieces of 128 KiB and 2, 3 and 4 of them
// ahead. 2 MiB 71, 79, 75, 70; 4 MiB 203, 150, 153, 165; 8 MiB 917, 700, 606, 572. Between cores that share no cache 2
// MiB 113, 101, 104, 95; 4 MiB 263, 215, 204, 191; 8 MiB 637, 490, 474, 497. From 9 MiB on these took longer, up to 1.2
// times: copies go past the cache then.
constexpr std::size_t kExchangedSliceBytes = 128 * kKiB, kExchangedAheadBytes = 4 * kExchangedSliceBytes;
constexpr std::size_t kExchangedAtMost = 8 << 20;
// Of a slice that is copied once. Nothing is gained by passing on a part of it early: all ranks copy at the same time,
// and then all read. 4 ranks on 2 cores of a Zen 4, own buffers, us in pieces of 64 KiB and of 512: 1 MiB 120 and 116,
// 2 MiB 234 and 204, 8 MiB 1574 and 1431, 16 MiB 3500 and 3200. Not measured where devices have a part in it.
constexpr std::size_t kCopiedSliceBytes = 512 * kKiB;

// Of a slice of a reduce_scatter by one_shot, where ranks share processors: a piece is sent when the one before has
// been combined, so that little of the rings is in use. Own buffers on 2 cores of a Zen 4, us, in one piece and so. 4
// ranks: 1 MiB 164 and 111, 4 MiB 824 and 729, 8 MiB 2690 and 2020; 8 ranks: 1 MiB 429 and 245, 2 MiB 1150 and 951, 8
// MiB 5130 and 4800. 4 ranks in pieces of 64 KiB: 1 MiB 103, not 83; 8 ranks in pieces of 128 KiB, with other rings: 1
// MiB 686, not 312. Sent before the one at hand is combined: 4 ranks 2 MiB 260, not 200, 8 ranks 1 MiB 645, not 294.
// Symmetric memory loses: 4 ranks 4 MiB 282 and 359, 8 ranks 2 MiB 253 and 313. All ranks must cut alike, and only its
// owner knows whether memory is symmetric. 2 ranks gain nothing. Not measured with a core for each rank.
constexpr std::size_t kReducedSliceBytes = 64 * kKiB, kReducedSliceOfFewBytes = 128 * kKiB;

// Calls in which a rank copies what it sends to all others of its host once, to where they read it: bytes of the whole
// message, and of what the rank sends, as a longer copy leaves the caches and takes much memory. Own buffers on 2
// cores, us, copied for each reader and copied once. All_gather: 3 ranks 256 KiB 15 and 17, 512 KiB 34 and 31, 16 MiB
// 2540 and 2830; 4 ranks 256 KiB 17 and 20, 1 MiB 81 and 62, 16 MiB 3330 and 2880; 8 ranks 256 KiB 41 and 38, 1 MiB 210
// and 120, 16 MiB 5450 and 4400. All_reduce: 3 ranks 512 KiB 59 and 52, 16 MiB 3520 and 3850; 4 ranks 512 KiB 62 and
// 57, 1 MiB 128 and 104, 32 MiB 8210 and 8490; 8 ranks 512 KiB 158 and 170, 1 MiB 412 and 339, 32 MiB 18500 and 16700.
// That was a Zen 5. A Zen 4, 512 KiB: all_gather of 3 ranks 60 and 91, of 4 47 and 63, of 8 134 and 121; all_reduce of
// 3 ranks 107 and 102, of 4 98 and 113. Not measured with a core for each rank, nor where some of the messages go to
// other hosts.
constexpr std::size_t kCopiedOnceAbove = 256 << 10, kCopiedOnceForFewAbove = 512 << 10, kCopiedOnceAtMost = 4 << 20;
constexpr std::ptrdiff_t kFew = 4;  // ranks of the host
constexpr std::size_t kCopiedOnceFrom = 32 << 10;
// Broadcasts to more than two others of the host. 8 crowded ranks by binomial_tree and by one_shot, which copies once:
// 32 KiB 10.6 and 11.9 us, 64 KiB 20 and 12. Not measured with a core for each rank.
constexpr std::size_t kSharedFrom = 64 << 10;
// Broadcasts of symmetric memory by 4 and 8 crowded ranks, copied and lent, us. Cores that share a cache: 64 KiB 6.7
// and 7.2, 12.1 and 16.4; 128 KiB 9.6 and 10.6, 21 and 25. Cores that share none: 64 KiB 10.7 and 9.3, 16.7 and 19.5;
// 128 KiB 19.8 and 11.4, 31 and 27. So 128 KiB loses less than it gains.
constexpr std::size_t kSharedLentFrom = 128 << 10;

// Crowded ranks leave the copies of messages up to this to be read after the call: so they do not wait for each other
// at its end, for which a rank would have to get the processor once more. The next call copies to another place, so
// with longer messages the places outgrow the cache. Own buffers on 2 cores of a Zen 4 that shared a cache, us, awaited
// and left: all_gather of 4 ranks 1 MiB 123 and 108, 2 MiB 226 and 212, 4 MiB 609 and 784; of 8
// ranks 512 KiB 153 and 135, 2 MiB 696 and 633; broadcast to 4 ranks 1 MiB 115 and 97, 2 MiB 204 and 187, 4 MiB 572 and
// 692; to 8 ranks 512 KiB 139 and 116, 1 MiB 248 and 221. All_reduce gains nothing: 4 ranks 1 MiB 210 and 209, 2 MiB
// 532 and 657.
constexpr std::size_t kCopiesLeftAtMost = 2 << 20;

// All_reduces whose results are copied once: by up to so many crowded ranks of the host, messages above so many bytes
// whose slices have so many at least. Ranks that are not crowded go by the first line, whatever their number. Crowded
// ranks that copy results also copy the inputs of messages up to kInputsCopiedAtMost. These have a fixed place then,
// and not one in each of n (n-1) rings. Own buffers on 2 cores of a Zen 4, us, as it was and with both copied: 4 ranks
// 256 KiB 44 and 60, 1 MiB 182 and 163; 5 ranks 256 KiB 74 and 84, 512 KiB 149 and 140; 8 ranks 128 KiB 89 and 79, 256
// KiB 152 and 116, 512 KiB 316 and 211, 1 MiB 699 and 501; 16 ranks 128 KiB 437 and 241, 512 KiB 2010 and 777. (1 MiB
// of 4 and 8 ranks, and 512 KiB of 16, had results copied before.) Between cores that share no cache 8 ranks gain up
// to 10 in 100; but 4 MiB 3480 and 4440.
struct SumsCopied {
  std::ptrdiff_t here;
  std::size_t above, from;
};
constexpr SumsCopied kSumsCopiedOnce[] = {
    {4, 256 << 10, 128 << 10}, {7, 256 << 10, 80 << 10}, {kAnyRanks, 64 << 10, 4 << 10}};
constexpr std::size_t kInputsCopiedAtMost = 2 << 20;

// Short messages between hosts, several rows of which go in one. Over TCP on two cores, each rank a host of its own, by
// turns, us for 4 KiB: all_to_all one_shot and bruck took 53 and 41 with 4 ranks, 200 and 139 with 8, 1770 and 490 with
// 16; scatter one_shot and binomial_tree 17 and 13, 45 and 31, 128 and 76; all_gather one_shot, ring and bruck 53, 59
// and 41; 198, 195 and 135; 1566, 872 and 438. all_to_all and scatter still won with 16 KiB, and lost from 64 to 256
// KiB on. The bound is the lower one, as such a link is slower: bruck sends a row log n / 2 times. Over shared memory
// none of them won. gather/binomial_tree was no faster than one_shot with 8 and 16 ranks, which shared the cores, so it
// is not here.
constexpr std::size_t kJoinedBytes = 16 * kKiB;

// Measured by hand on two cores. All keep the canonical order.
std::vector<Rule> built_in_rules() {
  using enum Collective;
  using enum Algorithm;
  constexpr Order canonical = Order::canonical;
  return {
      // 4 KiB, one_shot and two_shot: 2 ranks 0.45 and 0.71 us; on 2 cores, 4 ranks 4.1 and 6.5, 8 ranks 23 and 30.
      {all_reduce, 8, HostCount::one, 4 * kKiB, canonical, one_shot},
      {all_reduce, kAnyRanks, HostCount::one, 2 * kKiB, canonical, recursive_doubling},
      // 8 KiB, one_shot and two_shot: 3 ranks on 2 cores 3.2 and 5.5 us, 4 ranks 3.6 and 5.6; with a core each not
      // measured. 2 ranks, 16 KiB: 0.48 and 0.67, between cores that share no cache 1.32 and 2.22; but symmetric memory
      // 0.49 and 0.34, 1.30 and 0.97. 24 KiB: 0.84 both ways.
      {all_reduce, 4, HostCount::one, 8 * kKiB, canonical, one_shot},
      {all_reduce, 2, HostCount::one, 16 * kKiB, canonical, one_shot},
      {all_reduce, 2, HostCount::one, kAnyBytes, canonical, two_shot, kPairChunkBytes},
      {all_reduce, 32, HostCount::one, kAnyBytes, canonical, two_shot},
      {all_reduce, 2, HostCount::any, 4 * kKiB, canonical, one_shot},
      {all_reduce, kAnyRanks, HostCount::any, 64 * kKiB, canonical, recursive_doubling},
      {all_reduce, kAnyRanks, HostCount::shared, kAnyBytes, canonical, hierarchical},
      {all_reduce, 16, HostCount::any, kAnyBytes, canonical, two_shot},
      {all_reduce, kAnyRanks, HostCount::any, kAnyBytes, canonical, sliced_tree},
      {reduce_scatter, kAnyRanks, HostCount::shared, 512 * kKiB, canonical, sliced_tree},
      {reduce_scatter, kAnyRanks, HostCount::shared, kAnyBytes, canonical, hierarchical},
      {reduce_scatter, 32, HostCount::any, kAnyBytes, canonical, one_shot},
      {reduce_scatter, kAnyRanks, HostCount::any, kAnyBytes, canonical, sliced_tree},
      {all_gather, kAnyRanks, HostCount::shared, 2048 * kKiB, canonical, ring},
      {all_gather, kAnyRanks, HostCount::shared, kAnyBytes, canonical, hierarchical},
      {all_gather, 2, HostCount::any, kAnyBytes, canonical, one_shot},
      {all_gather, kAnyRanks, HostCount::several, kJoinedBytes, canonical, bruck},
      {all_gather, 32, HostCount::any, kAnyBytes, canonical, one_shot},
      {all_gather, kAnyRanks, HostCount::any, kAnyBytes, canonical, ring},
      {broadcast, kAnyRanks, HostCount::any, kSharedFrom - 1, canonical, binomial_tree},
      // Measured with 3, 4, 6, 8 and 16 ranks on 2 cores (bench/results/2026-11-27-many-ranks.md), not with a core
      // each. 8 MiB by chain and by hierarchical, near: 12 ranks 30600 and 13500 us, 16 ranks 41900 and 19400. With 32
      // ranks hierarchical loses below 2 MiB (bench/results/2026-11-28-fragments.md).
      {broadcast, 3, HostCount::one, 64 * kKiB, canonical, binomial_tree},
      {broadcast, 2, HostCount::one, kAnyBytes, canonical, chain},
      {broadcast, 3, HostCount::one, 1024 * kKiB, canonical, chain},
      {broadcast, 16, HostCount::one, 4096 * kKiB, canonical, one_shot},
      {broadcast, 3, HostCount::one, kAnyBytes, canonical, chain},
      {broadcast, 16, HostCount::one, kAnyBytes, canonical, hierarchical},
      {broadcast, kAnyRanks, HostCount::any, 64 * kKiB, canonical, binomial_tree},
      {broadcast, kAnyRanks, HostCount::any, kAnyBytes, canonical, chain},
      {barrier, kAnyRanks, HostCount::any, kAnyBytes, canonical, dissemination},
      {reduce, 2, HostCount::any, kAnyBytes, canonical, one_shot},
      {reduce, 8, HostCount::any, 16 * kKiB, canonical, one_shot},
      {reduce, kAnyRanks, HostCount::any, 64 * kKiB, canonical, binomial_tree},
      {reduce, 32, HostCount::any, kAnyBytes, canonical, two_shot},
      {reduce, kAnyRanks, HostCount::any, kAnyBytes, canonical, binomial_tree},
      {gather, kAnyRanks, HostCount::any, kAnyBytes, canonical, one_shot},
      {scatter, 2, HostCount::any, kAnyBytes, canonical, one_shot},
      {scatter, kAnyRanks, HostCount::several, kJoinedBytes, canonical, binomial_tree},
      {scatter, kAnyRanks, HostCount::any, kAnyBytes, canonical, one_shot},
      {scan, 8, HostCount::any, 2 * kKiB, canonical, one_shot},
      {scan, kAnyRanks, HostCount::any, kAnyBytes, canonical, recursive_doubling},
      {exclusive_scan, 8, HostCount::any, 2 * kKiB, canonical, one_shot},
      {exclusive_scan, kAnyRanks, HostCount::any, kAnyBytes, canonical, recursive_doubling},
      {transfer, kAnyRanks, HostCount::any, kAnyBytes, canonical, direct},
      {all_to_all, 2, HostCount::any, kAnyBytes, canonical, one_shot},
      {all_to_all, 1024, HostCount::several, kJoinedBytes, canonical, bruck},
      {all_to_all, 16, HostCount::any, kAnyBytes, canonical, one_shot},
      {all_to_all, kAnyRanks, HostCount::any, 256 * kKiB, canonical, one_shot},
      {all_to_all, kAnyRanks, HostCount::any, kAnyBytes, canonical, pairwise},
  };
}

bool exchanges_in_pace(Collective collective, const WholeMessage& message) {
  return collective == Collective::all_gather && message.ranks == 2 && message.hosts == 1 && !message.unequal_rows &&
         message.bytes > 0 && message.bytes <= kExchangedAtMost;
}

}  // namespace

const ChoiceTable& ChoiceTable::built_in() {
  static const ChoiceTable table{built_in_rules(), {}};
  return table;
}

Chooser::Chooser(const ChoiceTable& table, int ranks, int hosts, bool crowded)
    : ranks_(ranks), hosts_(hosts), crowded_(crowded) {
  for (const ChoiceTable* from : {&table, &ChoiceTable::built_in()})
    for (const Rule& rule : from->rules)
      if (rule.is_for(ranks, hosts)) rules_[static_cast<std::size_t>(rule.collective)].push_back(rule);
}

const Rule* Chooser::rule_for(Collective collective, std::size_t bytes, Order allowed, bool unequal_rows) const {
  const auto takes_rows = [&](const Rule& rule) {
    const AlgorithmEntry* const entry = unequal_rows ? find_algorithm(collective, rule.algorithm) : nullptr;
    return entry == nullptr || !entry->joins_rows;
  };
  for (const Rule& rule : rules_[static_cast<std::size_t>(collective)])
    if (rule.holds(bytes, allowed) && takes_rows(rule)) return &rule;
  return nullptr;
}

Algorithm Chooser::choose(Collective collective, std::size_t bytes, Order allowed, bool unequal_rows) const {
  const Rule* rule = rule_for(collective, bytes, allowed, unequal_rows);
  return rule == nullptr ? Algorithm::automatic : rule->algorithm;
}

int Chooser::chunks(Collective collective, Algorithm algorithm, std::size_t bytes, Order allowed,
                    bool unequal_rows) const {
  std::size_t chunk_bytes = 0;
  for (const Rule& rule : rules_[static_cast<std::size_t>(collective)]) {
    if (rule.algorithm != algorithm || !rule.holds(bytes, allowed)) continue;
    chunk_bytes = rule.chunk_bytes;
    break;
  }
  if (chunk_bytes == 0)
    chunk_bytes = default_chunk_bytes(collective, algorithm, {bytes, ranks_, hosts_, unequal_rows, crowded_});
  return chunks_of(bytes, chunk_bytes);
}

bool copies_once(Collective collective, std::size_t bytes, int ranks, std::ptrdiff_t here, bool crowded) {
  const std::size_t sent = collective == Collective::broadcast ? bytes : bytes / static_cast<std::size_t>(ranks);
  // With one reader the copy would only be made elsewhere.
  if (here <= 2 || sent > kCopiedOnceAtMost) return false;
  if (collective == Collective::broadcast && here > 3) return bytes >= kSharedFrom;
  if (!traits_of(collective).combines())
    return bytes > (here <= kFew ? kCopiedOnceForFewAbove : kCopiedOnceAbove) && sent >= kCopiedOnceFrom;
  const auto holds = [&](const SumsCopied& of) { return !crowded || here <= of.here; };
  const auto* const sums = std::ranges::find_if(kSumsCopiedOnce, holds);
  return bytes > sums->above && sent >= sums->from;
}

bool copies_inputs(std::size_t bytes, bool crowded) { return crowded && bytes <= kInputsCopiedAtMost; }

bool leaves_copies(Collective collective, std::size_t bytes, bool crowded) {
  return crowded && !traits_of(collective).combines() && bytes <= kCopiesLeftAtMost;
}

bool copies_shared(Collective collective, std::size_t bytes, bool crowded) {
  return crowded && collective == Collective::broadcast && bytes < kSharedLentFrom;
}

int pieces_ahead(Collective collective, const WholeMessage& message, int chunks) {
  if (!exchanges_in_pace(collective, message)) return 0;
  const std::size_t pieces = 2 * static_cast<std::size_t>(chunks), piece_bytes = (message.bytes + pieces - 1) / pieces;
  return static_cast<int>((kExchangedAheadBytes + piece_bytes - 1) / piece_bytes);
}

std::size_t default_chunk_bytes(Collective collective, Algorithm algorithm, const WholeMessage& message) {
  if (algorithm == Algorithm::two_shot || algorithm == Algorithm::hierarchical) return kCombinedChunkBytes;
  if (collective == Collective::broadcast && message.ranks == 2 && message.hosts == 1 && !message.crowded)
    return message.bytes;
  if (collective == Collective::broadcast && algorithm == Algorithm::one_shot) return kSharedChunkBytes;
  if (collective == Collective::reduce_scatter && algorithm == Algorithm::one_shot) {
    if (message.hosts > 1 || message.ranks <= 2 || message.unequal_rows || !message.crowded) return message.bytes;
    return static_cast<std::size_t>(message.ranks) *
           (message.ranks <= kFew ? kReducedSliceOfFewBytes : kReducedSliceBytes);
  }
  if (collective != Collective::all_gather || algorithm != Algorithm::one_shot) return kChunkBytes;
  const auto slice_bytes = [&] {
    if (exchanges_in_pace(collective, message)) return kExchangedSliceBytes;
    const bool all_copy_once = message.hosts == 1 && !message.unequal_rows &&
                               copies_once(collective, message.bytes, message.ranks, message.ranks, false);
    return all_copy_once ? kCopiedSliceBytes : kFragmentBytes;
  };
  return static_cast<std::size_t>(message.ranks) * slice_bytes();
}

int chunks_of(std::size_t bytes, std::size_t chunk_bytes) {
  const std::size_t size = std::max<std::size_t>(chunk_bytes, 1);
  return static_cast<int>(std::clamp<std::size_t>(bytes / size + (bytes % size != 0), 1, kMaxChunks));
}

}  // namespace tutti::internal
