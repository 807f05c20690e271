#include "schedule/verify.h"

#include <fmt/format.h>

#include "schedule/verify_execution.h"
#include "schedule/verify_form.h"
#include "schedule/verify_shortcuts.h"

namespace tutti::internal {
namespace {

std::string output_name(int rank, int slice, int chunk) {
  return fmt::format("rank {}'s output slice {} chunk {}", rank, slice, chunk);
}

int written_output(Execution& execution, int rank, int slice, int chunk) {
  const std::optional<int> found = execution.output(rank, slice, chunk);
  if (!found) throw Refutation{output_name(rank, slice, chunk) + " is never written"};
  return *found;
}

// Each rank that gets a slice holds the data of the rank that gave it.
void check_moved(Execution& execution, std::span<const Schedule> schedules, const Distribution& holds) {
  for (int rank = 0; rank < static_cast<int>(schedules.size()); ++rank)
    for (int slice = 0; slice < schedules[0].slices; ++slice)
      for (int chunk = 0; chunk < schedules[0].chunks && holds.gets(rank, slice); ++chunk) {
        const int origin = holds.origin(slice);
        const int found = written_output(execution, rank, slice, chunk);
        if (found != execution.expressions().leaf(origin))
          throw Refutation{fmt::format("{} ends as {}, not as rank {}'s data", output_name(rank, slice, chunk),
                                       execution.expressions().describe(found), origin)};
      }
}

void check_combined(Execution& execution, std::span<const Schedule> schedules, const Layout& layout,
                    const Distribution& holds, Order order, Proof& proof) {
  Expressions& expressions = execution.expressions();
  const bool is_scan = holds.traits.is_scan();
  proof.canonical = true;
  for (int slice = 0; slice < schedules[0].slices; ++slice) {
    std::optional<int> first;
    for (int rank = 0; rank < layout.ranks(); ++rank) {
      if (!holds.gets(rank, slice)) continue;
      const int leaves = combined_leaves(layout, holds.traits.collective, rank);
      if (leaves == 0) throw Refutation{fmt::format("rank {} is to get the combination of nothing", rank)};
      const int canonical = expressions.finish(expressions.canonical(0, leaves));
      for (int chunk = 0; chunk < schedules[0].chunks; ++chunk) {
        const std::string name = output_name(rank, slice, chunk);
        const int found = written_output(execution, rank, slice, chunk);
        if (!expressions.complete(found, leaves))
          throw Refutation{fmt::format("{} ends as {}: not every leaf exactly once and then finished", name,
                                       expressions.describe(found))};
        proof.canonical = proof.canonical && found == canonical;
        if (!is_scan && first.value_or(found) != found)
          throw Refutation{fmt::format("{} is combined in another order than the rest of the slice: {}", name,
                                       expressions.describe(found))};
        if (order == Order::canonical && found != canonical)
          throw Refutation{
              fmt::format("{} is not combined in canonical order but as {}", name, expressions.describe(found))};
        first = found;
      }
    }
    if (!is_scan) proof.slices.push_back(expressions.postfix(*first));
  }
}

void check_barrier(const Execution& execution, const Layout& layout) {
  for (int rank = 0; rank < layout.ranks(); ++rank)
    if (!execution.happened_after_all_starts(rank))
      throw Refutation{fmt::format("rank {} can leave the barrier before every rank has entered it", rank)};
}

}  // namespace

Proof verify(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal,
             std::span<const std::vector<Shortcut>> shortcuts) {
  Proof proof;
  try {
    check_form(schedules, layout, goal);
    check_shortcuts(schedules, shortcuts);
    Execution execution(schedules, layout, goal, shortcuts);
    execution.run();
    const Distribution holds(goal.collective, layout.ranks(), goal.root);
    switch (holds.traits.result) {
      case Result::nothing: check_barrier(execution, layout); break;
      case Result::combined:
      case Result::prefix:
      case Result::prefix_before: check_combined(execution, schedules, layout, holds, goal.order, proof); break;
      case Result::moved: check_moved(execution, schedules, holds); break;
    }
    proof.rounds = execution.rounds();
    proof.messages = execution.messages();
    proof.holds = true;
  } catch (const Refutation& refutation) {
    proof = {};
    proof.reason = refutation.reason;
  }
  return proof;
}

}  // namespace tutti::internal
