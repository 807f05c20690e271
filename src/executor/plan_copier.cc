#include "executor/plan_copier.h"

#include <algorithm>

#include "types/collective.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kKiB = 1024, kAny = ~std::size_t{0};

// Where the peer is to copy alone, in bytes: messages from `least` on, of a plan that sends at most `most` in all.
struct Sizes {
  std::size_t least = kAny, most = kAny;
};
struct Rule {
  Sizes usual, crowded;  // crowded: the ranks take turns on their cores, and each message that is waited for is a turn
};

// Measured over shared memory with own buffers, by turns, medians in us for calls of so many bytes: copied by the peer
// alone, and by both. 2 ranks with a core each; and crowded, 4 ranks on these 2 cores (Intel Xeon, 2 MiB of
// second-level cache each).
//
// A rank that also receives, or copies in its own memory, has enough to do. all_to_all: 32 KiB 2.1 and 2.1, 256 KiB 8.2
// and 16, 16 MiB 1350 and 1820; crowded 128 KiB 18 and 20, 1 MiB 208 and 272. all_gather: 32 KiB 2.3 and 2.7, 1 MiB 52
// and 76; crowded 128 KiB 20 and 17, 256 KiB 31 and 34. scatter: 256 KiB 5.2 and 8.0, 4 MiB 174 and 297; crowded 128
// KiB 7.1 and 5.8, 256 KiB 8.7 and 11.
constexpr Rule kMoves{.usual = {16 * kKiB}, .crowded = {64 * kKiB}};
// reduce_scatter: 32 KiB 2.3 and 2.7, 1 MiB 49 and 69; crowded 256 KiB 34 and 30, 1 MiB 187 and 209.
constexpr Rule kCombines{.usual = {16 * kKiB}, .crowded = {256 * kKiB}};
// Measured when its second half was written to the peers' rings in the pass that combines. 32 KiB 4.8 and 4.6, 256 KiB
// 27 and 26, 1 MiB 121 and 142, 16 MiB 2200 and 2570; crowded 256 KiB 77 and 71, 1 MiB 382 and 403.
constexpr Rule kAllReduces{.usual = {256 * kKiB}, .crowded = {256 * kKiB}};
// A rank that passes on what it gets is waited for by the one before and makes the one behind wait. broadcast, crowded:
// 256 KiB 68 and 43, 4 MiB 1260 and 1020. Not measured with a core for each of three ranks.
constexpr Rule kPassesOn{.usual = {16 * kKiB}, .crowded = {}};
// A rank that only sends does half of a long copy sooner than its peer does the whole: each core reads or writes
// memory, and the ring between them lies in the cache. broadcast: 32 KiB 2.1 and 1.9, 256 KiB 9.7 and 14.7, 1 MiB 56
// and 62, 4 MiB 410 and 299. gather: 16 KiB 1.1 and 0.5, 256 KiB 7.4 and 10.3, 4 MiB 326 and 280; crowded 1 MiB 60 and
// 53, 4 MiB 403 and 316.
constexpr Rule kOnlySends{.usual = {64 * kKiB, 1024 * kKiB}, .crowded = {}};
// A sender of Communicator::send() has time too, but in a round trip it waits for the answer. A round trip: 8 KiB 2.3
// and 3.0, 32 KiB 4.1 and 8.0, 1 MiB 99 and 161, 2 MiB 328 and 327, 16 MiB 3860 and 2880; crowded 64 KiB 9 and 16, 256
// KiB 22 and 57, 16 MiB 6160 and 8080. One after the other: 8 KiB 1.0 and 0.5, 16 KiB 1.2 and 0.9, 64 KiB 2.9 and 3.6,
// 1 MiB 51 and 59, 2 MiB 169 and 142; crowded 64 KiB 6.6 and 3.7, 256 KiB 12.6 and 13.8, 2 MiB 185 and 172, 16 MiB 1820
// and 1850.
constexpr Rule kTransfer{.usual = {16 * kKiB, 1536 * kKiB}, .crowded = {128 * kKiB}};
// The peer combines all that comes, which takes longer than a copy. reduce: 32 KiB 3.3 and 2.0, 1 MiB 144 and 89.
constexpr Rule kIsCombined{};

// Messages below this are copied even if the peer could use them where they lie, because this rank would wait until the
// peer has done so. Figures: symmetric memory, 2 ranks on an AMD EPYC, us for calls of so many bytes, lent and copied.
struct CopiesBelow {
  std::size_t usual, crowded;
  std::size_t dear = usual;  // where BetweenCores::copies_are_dear, with a core each
};
// Up to 32 KiB they are copied at once (AtOnce). broadcast: 16 KiB 0.30 and 0.25, 32 KiB 0.64 and 0.58, 48 KiB 0.81 and
// 0.94; between cores that share no cache 16 KiB 0.88 and 0.77, 32 KiB 1.25 and 1.33. Those that
// BetweenCores::split_shared_from speaks of are split instead. Not measured for crowded ranks but those of a broadcast.
constexpr CopiesBelow kOnlySendsCopies{32 * kKiB + 1, 128 * kKiB, 12 * kKiB};
// broadcast, 4 crowded ranks: 4 KiB 2.0 and 0.8, 64 KiB 6.0 and 4.0, 2 MiB 154 and 140; between cores that share no
// cache 1 MiB 297 and 82.
constexpr CopiesBelow kBroadcastCopies{kOnlySendsCopies.usual, kAny, kOnlySendsCopies.dear}, kPassesOnCopies{0, kAny};
// In a broadcast of more than this by crowded ranks, a near peer is lent the message, and for a far peer it is copied
// past the cache (SharedCopier::far_sender). Zen 4, copied through the cache and lent, near: 8 MiB by 4 ranks 1690 and
// 940, by 8 ranks 4690 and 2700; but 1 MiB by 3 ranks 50 and 102. Copied through the cache, lent, and copied past it,
// far: 8 MiB by 4 ranks 2200, 2630 and 1070. Calls of up to 4 MiB by 4 to 16 ranks, and by 3 ranks above 1 MiB, go by
// one_shot. Other processors: not measured.
constexpr std::size_t kByDistanceAbove = 4096 * kKiB;
// Communicator::send(), a round trip: 2 KiB 0.50 and 0.31, 4 KiB 0.51 and 0.47, 8 KiB 0.53 and 0.66. One after the
// other: 2 KiB 0.21 and 0.08, 8 KiB 0.23 and 0.16, 16 KiB 0.26 and 0.27. Not measured for crowded ranks.
constexpr CopiesBelow kTransferCopies{8 * kKiB, 0};
// The root of a scatter also copies its own row. So it lends what kMoves would leave to the peer. Zen 4, lent and
// copied: 32 KiB 0.62 and 1.10, 64 KiB 0.95 and 1.68.
constexpr CopiesBelow kScattersCopies{kMoves.usual.least, kMoves.crowded.least, kOnlySendsCopies.dear};
// By one_shot all ranks read at the same time what the root lends. 4 crowded ranks: 128 KiB 6.4 and 7.7, 1 MiB 46 and
// 112.
constexpr CopiesBelow kBroadcastToAllCopies{kOnlySendsCopies.usual, 64 * kKiB};
// reduce: 8 KiB 0.27 and 0.21, 32 KiB 0.98 and 0.84. Between cores that share no cache 32 KiB 1.18 and 1.46, but there
// copies are no slower than with ordinary buffers.
constexpr CopiesBelow kIsCombinedCopies{64 * kKiB, 64 * kKiB, 8 * kKiB};
// Ranks that exchange whole messages may overwrite theirs only once it is back. all_reduce of 4 KiB: 0.38 and 0.26, 8
// KiB 0.45 and 0.27, 16 KiB 0.79 and 0.49; of 8 KiB by 4 crowded ranks 5.4 and 3.6. (When what was lent was combined
// in scratch first.)
constexpr CopiesBelow kExchangesWholeCopies{32 * kKiB, 32 * kKiB, 4 * kKiB};
// all_reduce by two_shot, 4 crowded ranks, messages of 2 KiB: 5.2 and 5.7.
constexpr CopiesBelow kExchangesSlicesCopies{};
// all_gather, messages of 2 KiB: 0.29 and 0.19, 4 KiB 0.36 and 0.24, 8 KiB 0.34 and 0.36, 12 KiB 0.43 and 0.50; between
// cores that share no cache 8 KiB 1.00 and 0.96. 4 crowded ranks: 2 KiB 4.8 and 2.9, 16 KiB 6.3 and 5.4, 64 KiB 10.6
// and 16. reduce_scatter and all_to_all likewise. So messages of up to 8 KiB are copied.
constexpr CopiesBelow kMovesCopies{9 * kKiB, 32 * kKiB, 4 * kKiB};

bool nothing_arrives(std::span<const Traffic> traffic) {
  return std::ranges::none_of(traffic, [](const Traffic& of_peer) { return of_peer.arrivals > 0; });
}

bool only_sends(std::span<const PlanStep> steps, std::span<const Traffic> traffic) {
  const auto works_locally = [](const PlanStep& step) {
    const auto* const copy = std::get_if<ReduceStep>(&step);
    return copy != nullptr && copy->pushes == 0;  // one that pushes writes to the peers in the same pass
  };
  return nothing_arrives(traffic) && std::ranges::none_of(steps, works_locally);
}

const Rule& rule_for(std::span<const PlanStep> steps, std::span<const Traffic> traffic, Collective collective) {
  const bool combines = traits_of(collective).combines();
  if (collective == Collective::transfer) return kTransfer;
  if (only_sends(steps, traffic)) return combines ? kIsCombined : kOnlySends;
  if (collective == Collective::broadcast) return kPassesOn;
  if (collective == Collective::all_reduce) return kAllReduces;
  return combines ? kCombines : kMoves;
}

// As one_shot does: what is combined is not sent.
bool exchanges_whole(std::span<const PlanStep> steps) {
  const auto passes_on = [](const PlanStep& step) {
    const auto* const reduce = std::get_if<ReduceStep>(&step);
    return std::holds_alternative<ReceiveStep>(step) || (reduce != nullptr && reduce->pushes > 0);
  };
  return std::ranges::none_of(steps, passes_on);
}

CopiesBelow copies_below(std::span<const PlanStep> steps, std::span<const Traffic> traffic, const Call& call) {
  const Collective collective = call.collective;
  if (collective == Collective::transfer) return kTransferCopies;
  if (collective == Collective::broadcast && call.algorithm == Algorithm::one_shot) return kBroadcastToAllCopies;
  if (collective == Collective::broadcast) return nothing_arrives(traffic) ? kBroadcastCopies : kPassesOnCopies;
  if (nothing_arrives(traffic) && traits_of(collective).combines()) return kIsCombinedCopies;
  if (nothing_arrives(traffic)) return only_sends(steps, traffic) ? kOnlySendsCopies : kScattersCopies;
  if (collective == Collective::all_reduce)
    return exchanges_whole(steps) ? kExchangesWholeCopies : kExchangesSlicesCopies;
  return kMovesCopies;
}

// Whether the distance of a peer decides who copies what is sent to it, if ranks share processors.
bool goes_by_distance(const Call& call) {
  return call.collective == Collective::broadcast && call.count * size_of(call.dtype) > kByDistanceAbove;
}

}  // namespace

void mark_copiers(std::span<PlanStep> steps, std::span<const Traffic> traffic, const Call& call, const Host& host,
                  bool shares) {
  const bool crowded = host.crowded;
  const BetweenCores& cores = host.cores;
  const Rule& rule = rule_for(steps, traffic, call.collective);
  const Sizes& sizes = crowded ? rule.crowded : rule.usual;
  const std::size_t least = std::max(sizes.least, traits_of(call.collective).combines() ? cores.reads_combined_from
                                                  : &rule == &kOnlySends                ? cores.reads_sent_from
                                                                                        : cores.reads_moved_from);
  const CopiesBelow below = copies_below(steps, traffic, call);
  const std::size_t sender_below = crowded ? below.crowded : cores.copies_are_dear ? below.dear : below.usual;
  const bool by_distance = crowded && goes_by_distance(call);
  std::size_t bytes = 0;
  for (const PlanStep& step : steps)
    if (const auto* const send = std::get_if<SendStep>(&step)) bytes += send->bytes;
  // Where this rank only receives, or only sends.
  const bool splits =
      shares && !crowded && !traits_of(call.collective).combines() && (bytes == 0 || nothing_arrives(traffic));
  // A rank that also copies in its own memory has as much to do as a peer that copies all that the two map. scatter,
  // 128 KiB: by the peer 1.90 us, by both 2.09; 64 KiB 1.5 and 2.6 (AMD EPYC, Zen 4).
  const bool splits_shared = splits && only_sends(steps, traffic);
  const auto copier_of = [&](std::size_t of_message) {
    Copier copier;
    if (of_message < sender_below) copier.shared = by_distance ? SharedCopier::far_sender : SharedCopier::sender;
    if (of_message >= least && bytes <= sizes.most) copier.ordinary = OrdinaryCopier::peer;
    if (splits_shared && of_message >= cores.split_shared_from) copier.shared = SharedCopier::split;
    if (splits && of_message >= cores.split_from) copier.ordinary = OrdinaryCopier::split;
    return copier;
  };
  for (PlanStep& step : steps) {
    if (auto* const receive = std::get_if<ReceiveStep>(&step))
      receive->hints.may_split = splits && receive->bytes >= cores.split_from;
    if (auto* const send = std::get_if<SendStep>(&step)) send->copier = copier_of(send->bytes);
  }
}

}  // namespace tutti::internal
