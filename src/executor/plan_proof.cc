#include "executor/plan_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "executor/plan_memory_check.h"
#include "executor/plan_reduction_check.h"
#include "schedule/verify.h"
#include "schedule/verify_form.h"
#include "types/collective.h"

namespace tutti::internal {
namespace {

// One rank's plan against its schedule.
class PlanCheck {
 public:
  PlanCheck(const Plan& plan, const Schedule& schedule, const Layout& layout, MemoryCheck& memory)
      : plan_(plan),
        schedule_(schedule),
        memory_(memory),
        reductions_(plan, static_cast<std::uint32_t>(combined_leaves(layout, plan.call.collective, schedule.rank))) {}

  void run() {
    if (plan_.steps.size() != schedule_.steps.size() || plan_.sources.size() != schedule_.sources.size())
      throw Refutation{fmt::format("rank {}'s plan has other steps than its schedule", schedule_.rank)};
    memory_.enter(plan_, schedule_.rank);
    for (at_ = 0; at_ < plan_.steps.size(); ++at_) try {
        std::visit([this](const auto& step) { check(step, schedule_.steps[at_]); }, plan_.steps[at_]);
      } catch (const Refutation& refutation) {
        const std::string here = where(schedule_.rank, static_cast<int>(at_), schedule_.steps[at_].kind);
        throw Refutation{here + ": " + refutation.reason};
      }
    memory_.leave();
    check_traffic();
  }

  std::vector<Shortcut> shortcuts;

 private:
  struct Traffic {
    std::uint32_t sends = 0, receives = 0, arrivals = 0;
    friend bool operator==(const Traffic&, const Traffic&) = default;
  };

  static void require(bool holds, const char* what) {
    if (!holds) throw Refutation{what};
  }

  void check(const SendStep& step, const Step& of) {
    require(of.kind == StepKind::send && step.peer == of.peer, "the plan has another step here");
    require(!step.fused || at_ < fused_until_, "no reduce right before it may have done it");
    memory_.see(of.region, step.from, step.bytes);
    ++traffic_[step.peer].sends;
  }

  void check(const ReceiveStep& step, const Step& of) {
    require(of.kind == StepKind::receive && step.peer == of.peer && step.message == of.message,
            "the plan has another step here");
    memory_.see(of.region, step.to, step.bytes);
    ++traffic_[step.peer].receives;
    ++traffic_[step.peer].arrivals;
  }

  void check(const WaitStep& step, const Step& of) {
    const StepKind kind = step.for_sends ? StepKind::wait_send : StepKind::wait_receive;
    require(of.kind == kind && step.peer == of.peer && step.messages == of.message, "the plan has another step here");
  }

  void check(const ReduceStep& step, const Step& of) {
    require(of.kind == StepKind::reduce && step.finish == of.finish && step.first_source == of.first_source &&
                step.source_count == of.source_count,
            "the plan has another step here");
    require(step.partial == (of.region.space == Space::scratch), "its result is of another type");
    require(step.element_bytes == element_bytes(step.partial), "its elements have another size");
    memory_.see(of.region, step.to, step.count * step.element_bytes);
    std::vector<int> peers;
    for (std::uint32_t i = 0; i < of.source_count; ++i) {
      const Source& source = schedule_.sources[of.first_source + i];
      check(plan_.sources[of.first_source + i], source, step.count);
      if (source.peer == kLocal) continue;
      require(std::ranges::count(peers, source.peer) == 0, "it looks at two messages of one peer at once");
      peers.push_back(source.peer);
    }
    require(step.source_count <= plan_.most_sources && step.pushes <= plan_.most_pushes, "the workspace is too small");
    note_shortcuts(step);
    reductions_.check(step);
  }

  void check(const PlanSource& source, const Source& of, std::size_t count) {
    require(source.peer == of.peer && source.joins == of.joins && source.partial == of.partial,
            "the plan has another source");
    require(source.element_bytes == element_bytes(source.partial), "elements of a source have another size");
    if (source.peer == kLocal) return memory_.see(of.region, source.from(), count * source.element_bytes);
    memory_.see_length(of.region, count);
    ++traffic_[source.peer].arrivals;
  }

  // What Operation may do early, and how it finds it: it counts from the step behind the last reduce that it ran.
  void note_shortcuts(const ReduceStep& step) {
    require(step.pushes < plan_.steps.size() - at_, "it pushes to more steps than there are");
    fused_until_ = at_ + 1 + step.pushes;
    for (std::size_t other = at_ + 1; other < fused_until_; ++other) {
      const auto* const send = std::get_if<SendStep>(&plan_.steps[other]);
      require(send != nullptr && send->fused, "it pushes what is sent anyway, or is no send");
      shortcuts.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(other)});
    }
    if (step.finisher == 0) return;
    require(step.finisher < plan_.steps.size() && std::holds_alternative<ReduceStep>(plan_.steps[step.finisher]),
            "its finisher is no reduce");
    shortcuts.push_back({static_cast<std::uint32_t>(at_), step.finisher});
  }

  std::size_t element_bytes(bool partial) const {
    return partial ? accumulation_size_of(plan_.call.dtype) : size_of(plan_.call.dtype);
  }

  void check_traffic() const {
    std::map<int, Traffic> counted;
    for (std::size_t i = 0; i < plan_.peers.size(); ++i)
      counted[plan_.peers[i]] = {plan_.sends.at(i), plan_.receives.at(i), plan_.arrivals.at(i)};
    if (counted != traffic_ || counted.size() != plan_.peers.size())
      throw Refutation{fmt::format("rank {}'s plan counts its messages wrongly", schedule_.rank)};
  }

  const Plan& plan_;
  const Schedule& schedule_;
  MemoryCheck& memory_;
  const ReductionCheck reductions_;
  std::size_t at_ = 0;           // step
  std::size_t fused_until_ = 0;  // the step behind the last one that the reduce before may do early
  std::map<int, Traffic> traffic_;
};

// The caller's buffers, and how its parts are laid out in them.
void check_buffers(const Plan& plan, const Plan& whole, int rank, const Distribution& holds, bool in_place) {
  const auto require = [&](bool is_right, const char* what) {
    if (!is_right) throw Refutation{fmt::format("rank {}'s plan: {}", rank, what)};
  };
  const std::size_t element = size_of(whole.call.dtype);
  const RowRange in = holds.input(rank), out = holds.output(rank);
  require(
      plan.input_rows == static_cast<std::size_t>(in.count) && plan.output_rows == static_cast<std::size_t>(out.count),
      "its buffers have other rows");
  require(plan.tag == whole.call.pack() && plan.whole_row_bytes == whole.call.count * element, "it is of another call");
  require(plan.input_bytes == plan.input_rows * plan.whole_row_bytes &&
              plan.output_bytes == plan.output_rows * plan.whole_row_bytes,
          "it asks for buffers of another size");
  const auto row = static_cast<std::ptrdiff_t>(whole.whole_row_bytes);
  const bool is_apart = holds.traits.exchanges() && !in_place;
  require(plan.in_place == (is_apart ? kNotInPlace : (out.at - in.at) * row), "in place, a row has two addresses");
}

// Of one part.
std::vector<std::vector<Shortcut>> check_plans(std::span<const Plan* const> plans, std::size_t part,
                                               std::span<const Schedule> schedules, const Layout& layout,
                                               const Goal& goal, bool packed) {
  const Plan& first = plans[0]->part(part);
  const Distribution holds(first.call.collective, static_cast<int>(plans.size()), first.call.root);
  MemoryCheck memory(first.call.dtype, first.row_bytes, packed ? first.row_bytes : first.whole_row_bytes, holds);
  std::vector<std::vector<Shortcut>> shortcuts;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = plans[rank]->part(part);
    if (plan.row_bytes != first.row_bytes || plans[rank]->parts != plans[0]->parts)
      throw Refutation{fmt::format("rank {} cuts the call otherwise than rank 0", rank)};
    check_buffers(plan, *plans[0], static_cast<int>(rank), holds, goal.in_place);
    PlanCheck check(plan, schedules[rank], layout, memory);
    check.run();
    shortcuts.push_back(std::move(check.shortcuts));
  }
  // An exclusive scan of one rank has no output, and moves nothing.
  const bool is_wanted = std::ranges::any_of(plans, [](const Plan* plan) { return plan->output_rows > 0; });
  if (is_wanted || !traits_of(first.call.collective).has_bytes()) memory.check_whole_message();
  return shortcuts;
}

}  // namespace

Proof prove_plans(std::span<const Plan* const> plans, std::span<const Schedule> schedules, const Layout& layout,
                  const Goal& goal, bool packed) {
  Proof proof;
  try {
    if (plans.empty() || plans.size() != schedules.size())
      throw Refutation{fmt::format("there are {} plans of {} schedules", plans.size(), schedules.size())};
    const Plan& first = *plans[0];
    const std::size_t last = first.parts - 1;
    if (last * first.row_bytes + first.part(last).row_bytes != first.whole_row_bytes)
      throw Refutation{"the parts together are not the call"};
    // Parts between the first and the last are like the first.
    for (const std::size_t part : {std::size_t{0}, last}) {
      proof = verify(schedules, layout, goal, check_plans(plans, part, schedules, layout, goal, packed));
      if (!proof.holds || last == 0) return proof;
    }
  } catch (const Refutation& refutation) {
    proof = {};
    proof.reason = refutation.reason;
  }
  return proof;
}

}  // namespace tutti::internal
