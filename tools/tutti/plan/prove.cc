#include "plan/prove.h"

#include <fmt/format.h>

#include <memory>
#include <variant>
#include <vector>

#include "executor/plan_proof.h"
#include "types/collective.h"

namespace tutti::internal::tools {

CallProof prove_call(const AlgorithmEntry& entry, const Layout& layout, const Goal& goal,
                     std::span<const Schedule> schedules, int chunks, std::uint64_t bytes) {
  internal::Call call{.collective = entry.collective, .dtype = DType::float32, .op = Op::sum, .order = goal.order};
  call.algorithm = entry.algorithm;
  call.root = static_cast<std::uint16_t>(goal.root);
  const CollectiveTraits& traits = traits_of(entry.collective);
  if (traits.has_bytes())
    call.count = bytes / size_of(call.dtype) / static_cast<std::uint64_t>(traits.buffer_rows(layout.ranks()));

  std::size_t fused = 0;  // steps of all ranks that a reduce may do early
  std::vector<std::unique_ptr<internal::Plan>> plans;
  std::vector<const internal::Plan*> all;
  for (int rank = 0; rank < layout.ranks(); ++rank) {
    plans.push_back(internal::make_plan(call, entry, rank, layout, chunks));
    all.push_back(plans.back().get());
    for (const internal::PlanStep& step : plans.back()->steps)
      if (const auto* const reduce = std::get_if<internal::ReduceStep>(&step))
        fused += reduce->pushes + (reduce->finisher != 0 ? 1 : 0);
  }
  CallProof proven{.proof = internal::prove_plans(all, schedules, layout, goal), .of_plans = {}};
  if (proven.proof.holds)
    proven.of_plans = fmt::format(
        "so are the plans of {} bytes of float32, whichever of their {} fused steps are taken early\n", bytes, fused);
  return proven;
}

}  // namespace tutti::internal::tools
