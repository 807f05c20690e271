// Plans of all ranks of a call, with the schedules that they were made of: what the tests of plans sweep over.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collectives/sweep.h"
#include "executor/plan_proof.h"

namespace tutti::internal {

struct PlannedCall {
  const AlgorithmEntry* entry;
  Layout layout;
  Call call;
  Cut cut;
  Message message;
  std::vector<Schedule> schedules;
  std::vector<CallRows> rows;                // by rank, if they are not all of one length
  std::vector<std::unique_ptr<Plan>> plans;  // by rank

  PlannedCall(const AlgorithmEntry& entry, const Layout& layout, const Call& of, int chunks, const Cut& cut,
              std::vector<CallRows> of_ranks = {})
      : entry(&entry), layout(layout), call(of), cut(cut), rows(std::move(of_ranks)) {
    call.collective = entry.collective;
    call.algorithm = entry.algorithm;
    call.order = goal().order;
    if (entry.collective == Collective::barrier) call.count = 0;
    message = {.root = call.root,
               .chunks = chunks,
               .in_place = cut.in_place,
               .copies_once = entry.copied_once != Copied::nothing && cut.copies_once,
               .copies_inputs = cut.copies_inputs,
               .ahead = cut.ahead};
    schedules = build_all(entry, layout, message);
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      Cut own = cut;
      if (cut.ahead > 0 && rank % 3 == 1) {  // each rank's own affair
        own.ahead = 0;
        Message unpaced = message;
        unpaced.ahead = 0;
        schedules[static_cast<std::size_t>(rank)] = entry.schedule(rank, layout, unpaced);
      }
      own.rows = rows.empty() ? nullptr : &rows[static_cast<std::size_t>(rank)];
      plans.push_back(make_plan(call, entry, rank, layout, chunks, {}, own));
    }
  }

  Goal goal() const {
    Goal goal = goal_of(*entry, message);
    if (layout.leaves() <= 2) goal.order = Order::canonical;
    return goal;
  }

  Proof prove() const {
    std::vector<const Plan*> all;
    for (const auto& plan : plans) all.push_back(plan.get());
    return prove_plans(all, schedules, layout, goal(), cut.packed, rows);
  }

  std::string name() const {
    return name_of(*entry) + " on " + std::to_string(layout.ranks()) + " ranks, " + in_words(layout.host) + ", " +
           std::to_string(call.count) + " " + std::string(to_string(call.dtype)) + ", root " +
           std::to_string(call.root) + ", " + std::to_string(message.chunks) + " chunks, parts of " +
           std::to_string(cut.part_bytes) + (cut.packed ? " packed" : "") + " bytes" +
           (cut.in_place ? ", in place" : "") + (rows.empty() ? "" : ", rows of different lengths");
  }
};

}  // namespace tutti::internal
