// The plan of every algorithm of the catalogue is proven, with all that it has fused; plans that are not their
// schedules' are refused.
#include "executor/plan_proof.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <random>
#include <set>
#include <utility>

#include "brief.h"
#include "executor/plan_sweep.h"

namespace tutti::internal {
namespace {

constexpr int kMaxRanksOfPlans = 16;

struct Fused {
  int plans = 0, pushes = 0, finishers = 0;
  std::set<std::string> pushing, finishing;  // algorithms
};

void expect_proven(const PlannedCall& planned, Fused& fused) {
  const Proof proof = planned.prove();
  EXPECT_TRUE(proof.holds) << planned.name() << ": " << proof.reason;
  for (const auto& plan : planned.plans) {
    ++fused.plans;
    for (const PlanStep& step : plan->steps) {
      const auto* const reduce = std::get_if<ReduceStep>(&step);
      if (reduce == nullptr) continue;
      fused.pushes += static_cast<int>(reduce->pushes);
      fused.finishers += reduce->finisher != 0;
      if (reduce->pushes > 0) fused.pushing.insert(name_of(*planned.entry));
      if (reduce->finisher > 0) fused.finishing.insert(name_of(*planned.entry));
    }
  }
}

// Counts that all chunks share evenly, that they do not, fewer than ranks, and none.
std::vector<std::uint64_t> counts(int ranks) {
  const auto n = static_cast<std::uint64_t>(ranks);
  return {n * 320, 1000, n * 16 + 1, n - 1, 0};
}

// One of these calls, and a way to cut it.
void expect_proven(const AlgorithmEntry& entry, const Layout& layout, int chunks, std::uint64_t count, Fused& fused) {
  const bool small = count % 2 == 1;
  const Call call{.dtype = small ? DType::bfloat16 : DType::float32,
                  .op = small ? Op::avg : Op::sum,
                  .count = count,
                  .root = static_cast<std::uint16_t>(count % static_cast<std::uint64_t>(layout.ranks()))};
  expect_proven({entry, layout, call, chunks, {}}, fused);
  if (!takes_both(entry)) expect_proven({entry, layout, call, chunks, {.in_place = true}}, fused);
  if (entry.copied_once != Copied::nothing) expect_proven({entry, layout, call, chunks, {.copies_once = true}}, fused);
  if (entry.copied_once == Copied::output)
    expect_proven({entry, layout, call, chunks, {.copies_once = true, .copies_inputs = true, .leaves_copies = true}},
                  fused);
  if (is_paced(entry)) expect_proven({entry, layout, call, chunks, {.ahead = 1}}, fused);
  if (count == 1000 && entry.collective != Collective::barrier)
    expect_proven({entry, layout, call, chunks, {.part_bytes = 1024, .packed = chunks % 2 == 0}}, fused);
}

TEST(PlanProof, HoldsForEveryAlgorithmWithItsFusedStores) {
  Fused fused;
  std::mt19937 random(3);
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; n <= (kBrief ? 7 : kMaxRanksOfPlans); ++n)
      for (const int chunks : chunks_of(entry)) {
        const std::vector<std::uint64_t> all = counts(n);
        for (std::size_t i = 0; i < all.size(); ++i)  // of more chunks some: they take longest
          if (chunks == 1 || i % 2 == static_cast<std::size_t>(chunks % 2))
            expect_proven(entry, Layout::of(n), chunks, all[i], fused);
        if (entry.algorithm != Algorithm::hierarchical) continue;
        for (const std::vector<int>& hosts : placements(n, random))
          expect_proven(entry, on_hosts(hosts), chunks, all[random() % all.size()], fused);
      }
  std::cout << fused.plans << " plans with " << fused.pushes << " fused stores of " << fused.pushing.size()
            << " algorithms, and " << fused.finishers << " jumps of " << fused.finishing.size() << "\n";
  EXPECT_GE(fused.pushing.size(), 5u);
  EXPECT_GE(fused.finishing.size(), 2u);
}

// What a copy makes is not there before it.
TEST(PlanProof, RefusesToSendEarlyWhatACopyMakes) {
  PlannedCall planned(*find_algorithm(Collective::broadcast, Algorithm::one_shot), Layout::of(3),
                      {.dtype = DType::float32, .count = 1000}, 1, {.copies_once = true});
  bool is_found = false;
  for (PlanStep& step : planned.plans[0]->steps)
    if (auto* const reduce = std::get_if<ReduceStep>(&step); reduce != nullptr && reduce->pushes > 0) {
      EXPECT_FALSE(reduce->sends_source);
      reduce->sends_source = is_found = true;
    }
  EXPECT_TRUE(is_found);
  EXPECT_FALSE(planned.prove().holds);
}

// Copies from and to a device go by rows.
TEST(PlanProof, RefusesRowsThatTheCallersBuffersDoNotHave) {
  const AlgorithmEntry& entry = *find_algorithm(Collective::all_gather, Algorithm::ring);
  const auto refused = [&](void (*damage)(Plan&)) {
    PlannedCall planned(entry, Layout::of(3), {.dtype = DType::float32, .count = 1000}, 1, {.packed = true});
    EXPECT_TRUE(planned.prove().holds);
    damage(*planned.plans[1]);
    return !planned.prove().holds;
  };
  EXPECT_TRUE(refused([](Plan& plan) { plan.input_bytes = 3 * plan.whole_row_bytes; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.fetches.front().rows = 3; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.deliveries.front().rows = 2; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.deliveries.front().buffer_stride -= 4; }));
  EXPECT_TRUE(refused([](Plan& plan) { plan.deliveries.front().slot += 4; }));
}

// Rows of random lengths, in any order and with gaps in the buffers of each rank. symmetric: rows between two ranks are
// as long there as back, and lie in the output as in the input.
std::vector<CallRows> random_rows(const Distribution& holds, bool symmetric, std::mt19937& random) {
  std::vector<std::size_t> lengths;
  for (int row = 0; row < holds.rows(); ++row) lengths.push_back(random() % 3 == 0 ? 0 : random() % 200);
  const auto n = static_cast<std::size_t>(holds.ranks);
  for (std::size_t row = 0; symmetric && row < lengths.size(); ++row)
    lengths[row] = lengths[std::min(row, row % n * n + row / n)];
  const auto placed = [&](const RowRange& held) {
    BufferRows rows;
    std::vector<std::size_t> order;
    for (int i = 0; i < held.count; ++i) {
      rows.counts.push_back(lengths[static_cast<std::size_t>(held.first + i * held.step)]);
      order.push_back(order.size());
    }
    std::ranges::shuffle(order, random);
    rows.begins.resize(order.size());
    std::size_t end = 0;
    for (const std::size_t row : order) {
      rows.begins[row] = end + (order.size() > 1 ? random() % 3 : 0);
      end = rows.begins[row] + rows.counts[row];
    }
    return rows;
  };
  std::vector<CallRows> rows;
  for (int rank = 0; rank < holds.ranks; ++rank) {
    const BufferRows input = placed(holds.input(rank));
    rows.push_back({input, symmetric ? input : placed(holds.output(rank))});
  }
  return rows;
}

PlannedCall of_random_rows(const AlgorithmEntry& entry, int n, int chunks, bool packed, bool in_place,
                           std::mt19937& random) {
  Call call{.collective = entry.collective,
            .dtype = random() % 2 == 0 ? DType::bfloat16 : DType::float32,
            .flags = kUnequalRows,
            .root = static_cast<std::uint16_t>(random() % static_cast<unsigned>(n))};
  auto rows = random_rows(Distribution(entry.collective, n, call.root), in_place, random);
  if (traits_of(entry.collective).shows_all_rows())
    call.count = std::max(rows[0].input.total(), rows[0].output.total());
  return {entry,
          Layout::of(n),
          call,
          chunks,
          {.packed = packed,
           .in_place = in_place,
           .copies_once = !packed && n % 2 == 0,
           .copies_inputs = !packed && n % 4 == 0,
           .leaves_copies = !packed && n % 3 > 0},
          std::move(rows)};
}

bool takes_unequal_rows(const AlgorithmEntry& entry) {
  return traits_of(entry.collective).has_rows() && !entry.joins_rows;
}

TEST(PlanProof, HoldsWhereRanksAreFewPiecesAhead) {
  Fused fused;
  const AlgorithmEntry& entry = *find_algorithm(Collective::all_gather, Algorithm::one_shot);
  for (const int n : {2, 3, 5})
    for (const int ahead : {1, 2, 4})
      for (const int chunks : {1, 4, 9})
        expect_proven({entry, Layout::of(n), Call{.dtype = DType::float32, .count = 1000}, chunks, {.ahead = ahead}},
                      fused);
}

TEST(PlanProof, HoldsForRowsOfDifferentLengths) {
  std::mt19937 random(11);
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 1; takes_unequal_rows(entry) && n <= (kBrief ? 6 : kMaxRanksOfPlans); ++n)
      for (const int chunks : chunks_of(entry))
        for (const bool packed : {false, true})
          for (const bool in_place : {false, true}) {
            if (in_place && (packed || takes_both(entry))) continue;
            const PlannedCall planned = of_random_rows(entry, n, chunks, packed, in_place, random);
            const Proof proof = planned.prove();
            EXPECT_TRUE(proof.holds) << planned.name() << ": " << proof.reason;
          }
}

TEST(PlanProof, RefusesRowsThatLieElsewhereOrAreLonger) {
  std::mt19937 random(12);
  int refused = 0;
  for (const AlgorithmEntry& entry : catalogue())
    for (int n = 2; takes_unequal_rows(entry) && n <= 5; ++n)
      for (int i = 0; i < 10; ++i) {
        PlannedCall planned = of_random_rows(entry, n, 1, false, false, random);
        CallRows& of = planned.rows[random() % planned.rows.size()];
        BufferRows& rows = of.input.counts.empty() || random() % 2 == 0 ? of.output : of.input;
        if (rows.counts.empty()) continue;
        const std::size_t row = random() % rows.counts.size();
        if (rows.counts[row] == 0) continue;
        random() % 2 == 0 ? ++rows.counts[row] : ++rows.begins[row];
        EXPECT_FALSE(planned.prove().holds) << planned.name();
        ++refused;
      }
  EXPECT_GT(refused, 100);
}

TEST(PlanProof, ThereIsNoneOfUnequalRowsIfMessagesAreOfSeveral) {
  std::mt19937 random(13);
  int refused = 0;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.joins_rows) continue;
    try {
      of_random_rows(entry, 4, 1, false, false, random);
      ADD_FAILURE() << name_of(entry);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()),
                name_of(entry) + ": sends several rows in one message, so it takes rows of one length only");
      ++refused;
    }
  }
  EXPECT_GE(refused, 4);
}

// Row by row, in bytes.
TEST(PlanProof, RefusesMessagesOfOtherRows) {
  int damaged = 0;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.joins_rows) continue;
    for (const int n : {3, 4, 8, 16})  // of 16 ranks, more rows go together than an element has bytes
      for (const int rank : {0, 2})
        for (const std::ptrdiff_t by : {-4, 4, -20, 20})
          for (const bool moves : {false, true}) {
            PlannedCall planned(entry, Layout::of(n), {.dtype = DType::float32, .count = 5}, 1, {});
            ASSERT_TRUE(planned.prove().holds) << planned.name();
            Plan& plan = *planned.plans[static_cast<std::size_t>(rank)];
            for (PlanStep& step : plan.steps) {
              auto* const send = std::get_if<SendStep>(&step);
              auto* const receive = std::get_if<ReceiveStep>(&step);
              if ((send == nullptr || send->bytes <= 20) && (receive == nullptr || receive->bytes <= 20)) continue;
              std::size_t& what = send != nullptr ? (moves ? send->from.offset : send->bytes)
                                                  : (moves ? receive->to.offset : receive->bytes);
              what += static_cast<std::size_t>(by);
              EXPECT_FALSE(planned.prove().holds) << planned.name() << ", by " << by;
              what -= static_cast<std::size_t>(by);
              ++damaged;
            }
          }
  }
  EXPECT_GT(damaged, 100);
}

// As if each row of relay began on a cache line: then those of a message do not lie side by side.
TEST(PlanProof, RefusesRowsOfRelayThatLieApart) {
  constexpr std::size_t kRowBytes = 20, kApart = 64;
  int refused = 0;
  for (const AlgorithmEntry& entry : catalogue()) {
    if (!entry.joins_rows) continue;
    for (const int n : {4, 8}) {
      PlannedCall planned(entry, Layout::of(n), {.dtype = DType::float32, .count = 5}, 1, {});
      ASSERT_TRUE(planned.prove().holds) << planned.name();
      bool has_relay = false;
      for (auto& plan : planned.plans) {
        const auto move = [&](Space space, std::size_t& offset) {
          if (space != Space::scratch) return;
          offset = offset / kRowBytes * kApart;
          has_relay = true;
        };
        for (PlanStep& step : plan->steps) {
          if (auto* const send = std::get_if<SendStep>(&step)) move(send->from.space, send->from.offset);
          if (auto* const receive = std::get_if<ReceiveStep>(&step)) move(receive->to.space, receive->to.offset);
          if (auto* const reduce = std::get_if<ReduceStep>(&step)) move(reduce->to.space, reduce->to.offset);
        }
        for (PlanSource& source : plan->sources)
          if (source.peer == kLocal) move(source.space, source.offset);
        plan->scratch_bytes = plan->scratch_bytes / kRowBytes * kApart;
      }
      EXPECT_TRUE(has_relay) << planned.name();
      EXPECT_FALSE(planned.prove().holds) << planned.name();
      ++refused;
    }
  }
  EXPECT_GE(refused, 8);
}

}  // namespace
}  // namespace tutti::internal
