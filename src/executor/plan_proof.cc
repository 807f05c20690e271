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
  PlanCheck(const Plan& plan, const Schedule& schedule, const Layout& layout, MemoryCheck& memory,
            MemoryCheck::Buffers buffers)
      : plan_(plan),
        schedule_(schedule),
        memory_(memory),
        buffers_(std::move(buffers)),
        reductions_(plan, static_cast<std::uint32_t>(combined_leaves(layout, plan.call.collective, schedule.rank))) {}

  void run() {
    if (plan_.steps.size() != schedule_.steps.size() || plan_.sources.size() != schedule_.sources.size())
      throw Refutation{fmt::format("rank {}'s plan has other steps than its schedule", schedule_.rank)};
    memory_.enter(plan_, schedule_.rank, buffers_);
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
  static void require(bool holds, const char* what) {
    if (!holds) throw Refutation{what};
  }

  void check(const SendStep& step, const Step& of) {
    require(of.kind == StepKind::send && step.peer == of.peer, "the plan has another step here");
    require(!step.fused || at_ < fused_until_, "no reduce right before it may have done it");
    see_message(of, step.from, step.bytes);
    Traffic& traffic = traffic_[step.peer];
    ++traffic.sends;
    if (!plan_.leaves_copies || step.from.space != Space::scratch) traffic.lends = traffic.sends;
  }

  void check(const ReceiveStep& step, const Step& of) {
    require(of.kind == StepKind::receive && step.peer == of.peer && step.message == of.message,
            "the plan has another step here");
    see_message(of, step.to, step.bytes);
    ++traffic_[step.peer].receives;
    ++traffic_[step.peer].arrivals;
  }

  // Rows of a message have one length, and lie side by side.
  void see_message(const Step& of, Place place, std::size_t bytes) {
    const std::size_t rows = Schedule::rows_of(of), row_bytes = bytes / rows;
    require(row_bytes * rows == bytes, "its message is not of that many rows of one length");
    for (std::size_t i = 0; i < rows; ++i, place.offset += row_bytes)
      memory_.see(schedule_.row_of(of, i), place, row_bytes);
  }

  void check(const WaitStep& step, const Step& of) {
    const StepKind kind = step.for_sends ? StepKind::wait_send : StepKind::wait_receive;
    require(of.kind == kind && step.peer == of.peer && step.messages == of.message, "the plan has another step here");
  }

  void check(const ReduceStep& step, const Step& of) {
    require(of.kind == StepKind::reduce && step.finish == of.finish && step.first_source == of.first_part &&
                step.source_count == of.part_count,
            "the plan has another step here");
    require(step.partial == (of.region.space == Space::scratch), "its result is of another type");
    require(step.element_bytes == element_bytes(step.partial), "its elements have another size");
    memory_.see(of.region, step.to, step.count * step.element_bytes);
    std::vector<int> peers;
    for (std::uint32_t i = 0; i < of.part_count; ++i) {
      const Source& source = schedule_.sources[of.first_part + i];
      check(plan_.sources[of.first_part + i], source, step.count);
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
      require(!step.sends_source || is_copied(step, send->from), "it pushes early what is not there before it");
      shortcuts.push_back({static_cast<std::uint32_t>(at_), static_cast<std::uint32_t>(other)});
    }
    if (step.finisher == 0) return;
    require(step.finisher < plan_.steps.size() && std::holds_alternative<ReduceStep>(plan_.steps[step.finisher]),
            "its finisher is no reduce");
    require(waits_for_input(step), "its finisher has to wait, wherever the output is");
    shortcuts.push_back({static_cast<std::uint32_t>(at_), step.finisher});
  }

  bool is_copied(const ReduceStep& step, const Place& from) const {
    const PlanSource& source = plan_.sources.at(step.first_source);
    return step.source_count == 1 && !step.finish && source.peer == kLocal && source.from() == from;
  }

  // The finisher of `step` can overwrite no loan but one of the input, and no step behind it relies on the waits.
  bool waits_for_input(const ReduceStep& step) const {
    const auto lends_another = [](const PlanStep& any) {
      const auto* const send = std::get_if<SendStep>(&any);
      return send != nullptr && send->from.space != Space::input;
    };
    const auto is_wait = [](const PlanStep& any) { return std::holds_alternative<WaitStep>(any); };
    const auto is_for_sends = [](const PlanStep& any) {
      const auto* const wait = std::get_if<WaitStep>(&any);
      return wait != nullptr && wait->for_sends;
    };
    const std::span<const PlanStep> steps = plan_.steps;
    return std::ranges::none_of(steps, lends_another) &&
           std::ranges::all_of(steps.subspan(step.finisher + 1), is_wait) &&
           std::ranges::all_of(steps.subspan(at_ + 1, step.finisher - at_ - 1), is_for_sends);
  }

  std::size_t element_bytes(bool partial) const {
    return partial ? accumulation_size_of(plan_.call.dtype) : size_of(plan_.call.dtype);
  }

  void check_traffic() const {
    std::map<int, Traffic> counted;
    for (std::size_t i = 0; i < plan_.peers.size(); ++i) counted[plan_.peers[i]] = plan_.traffic.at(i);
    if (counted != traffic_ || counted.size() != plan_.peers.size())
      throw Refutation{fmt::format("rank {}'s plan counts its messages wrongly", schedule_.rank)};
  }

  const Plan& plan_;
  const Schedule& schedule_;
  MemoryCheck& memory_;
  const MemoryCheck::Buffers buffers_;
  const ReductionCheck reductions_;
  std::size_t at_ = 0;           // step
  std::size_t fused_until_ = 0;  // the step behind the last one that the reduce before may do early
  std::map<int, Traffic> traffic_;
};

// What is known of one rank's buffers: of a call, and of this part of it.
class BufferCheck {
 public:
  // rows: of the rank, if they are not all of one length.
  BufferCheck(const Plan& plan, const Plan& whole, int rank, const Distribution& holds, const CallRows* rows,
              bool packed)
      : plan_(plan),
        whole_(whole),
        rank_(rank),
        traits_(holds.traits),
        element_(size_of(whole.call.dtype)),
        in_(holds.input(rank)),
        out_(holds.output(rank)),
        rows_(rows),
        packed_(packed) {}

  void run(bool in_place) const {
    require(plan_.tag == whole_.call.pack(), "it is of another call");
    if (rows_ == nullptr)
      require(plan_.whole_row_bytes == whole_.call.count * element_, "its rows have another length");
    const std::vector<Bytes> input = in_buffer(in_, true), output = in_buffer(out_, false);
    require(plan_.input_bytes == extent(input) && plan_.output_bytes == extent(output),
            "it asks for buffers of another size");
    check_in_place(in_place, input, output);
    if (packed_) {
      check_copies(plan_.fetches, input, plan_.input_slot);
      check_copies(plan_.deliveries, output, plan_.output_slot);
    }
  }

  // Where the part finds its rows.
  MemoryCheck::Buffers buffers() const { return {in_part(in_, true), in_part(out_, false)}; }

 private:
  using Bytes = MemoryCheck::Bytes;

  void require(bool is_right, const char* what) const {
    if (!is_right) throw Refutation{fmt::format("rank {}'s plan: {}", rank_, what)};
  }

  // The whole rows, as the caller has them.
  std::vector<Bytes> in_buffer(const RowRange& held, bool input) const {
    std::vector<Bytes> found;
    for (std::size_t i = 0; i < static_cast<std::size_t>(held.count); ++i) {
      const std::size_t row = whole_.call.count * element_;
      if (rows_ == nullptr) {
        found.push_back({i * row, (i + 1) * row});
        continue;
      }
      const BufferRows& of = input ? rows_->input : rows_->output;
      found.push_back({of.begins.at(i) * element_, (of.begins.at(i) + of.counts.at(i)) * element_});
    }
    return found;
  }
  // As the operation has them: cut to the part, and one right behind the other if packed.
  std::vector<Bytes> in_part(const RowRange& held, bool input) const {
    std::vector<Bytes> found = in_buffer(held, input);
    std::size_t end = 0;
    for (Bytes& row : found) {
      const std::size_t length = rows_ == nullptr ? plan_.row_bytes : row.end - row.begin;
      if (packed_) row.begin = end;
      row.end = end = row.begin + length;
    }
    return found;
  }
  static std::size_t extent(const std::vector<Bytes>& rows) {
    std::size_t end = 0;
    for (const Bytes& row : rows)
      if (row.begin != row.end) end = std::max(end, row.end);
    return end;
  }

  // The row that both have must have one address.
  void check_in_place(bool in_place, const std::vector<Bytes>& input, const std::vector<Bytes>& output) const {
    if (traits_.exchanges()) return require(plan_.in_place == (in_place ? 0 : kNotInPlace), "it is for other buffers");
    if (!traits_.has_rows()) return require(plan_.in_place == 0, "in place, the message has two addresses");
    if (!in_.holds(rank_) || !out_.holds(rank_)) return;
    const std::size_t from = input[static_cast<std::size_t>(in_.index(rank_))].begin;
    const std::size_t to = output[static_cast<std::size_t>(out_.index(rank_))].begin;
    require(plan_.in_place == static_cast<std::ptrdiff_t>(from) - static_cast<std::ptrdiff_t>(to),
            "in place, a row has two addresses");
  }

  // Copies between a device and a slot go by rows: byte by byte those of the part, and in their order.
  void check_copies(const std::vector<RowCopy>& copies, const std::vector<Bytes>& rows, std::size_t slot) const {
    std::vector<Bytes> wanted, found;
    for (const Bytes& row : rows)
      if (const std::size_t length = rows_ == nullptr ? plan_.row_bytes : row.end - row.begin; length > 0)
        wanted.push_back({row.begin, row.begin + length});
    for (const RowCopy& copy : copies)
      for (std::size_t i = 0; i < copy.rows && copy.row_bytes > 0; ++i) {
        const std::size_t begin = copy.buffer + i * copy.buffer_stride;
        require(copy.slot + i * copy.slot_stride == slot, "its slot has rows elsewhere");
        found.push_back({begin, begin + copy.row_bytes});
        slot += copy.row_bytes;
        require(slot <= plan_.slot_bytes, "its slot is too small");
      }
    require(std::ranges::equal(wanted, found,
                               [](const Bytes& a, const Bytes& b) { return a.begin == b.begin && a.end == b.end; }),
            "its buffers have other rows");
  }

  const Plan& plan_;
  const Plan& whole_;
  const int rank_;
  const CollectiveTraits& traits_;
  const std::size_t element_;
  const RowRange in_, out_;
  const CallRows* const rows_;
  const bool packed_;
};

// Of one part.
std::vector<std::vector<Shortcut>> check_plans(std::span<const Plan* const> plans, std::size_t part,
                                               std::span<const Schedule> schedules, const Layout& layout,
                                               const Goal& goal, bool packed, std::span<const CallRows> rows) {
  const Plan& first = plans[0]->part(part);
  const Distribution holds(first.call.collective, static_cast<int>(plans.size()), first.call.root);
  MemoryCheck memory(first.call.dtype, holds);
  std::vector<std::vector<Shortcut>> shortcuts;
  for (std::size_t rank = 0; rank < plans.size(); ++rank) {
    const Plan& plan = plans[rank]->part(part);
    if ((rows.empty() && plan.row_bytes != first.row_bytes) || plans[rank]->parts != plans[0]->parts)
      throw Refutation{fmt::format("rank {} cuts the call otherwise than rank 0", rank)};
    const BufferCheck buffers(plan, *plans[0], static_cast<int>(rank), holds, rows.empty() ? nullptr : &rows[rank],
                              packed);
    buffers.run(goal.in_place);
    PlanCheck check(plan, schedules[rank], layout, memory, buffers.buffers());
    check.run();
    shortcuts.push_back(std::move(check.shortcuts));
  }
  // An exclusive scan of one rank has no output, and moves nothing.
  bool is_wanted = !holds.traits.has_bytes();
  for (int rank = 0; rank < holds.ranks; ++rank) is_wanted = is_wanted || holds.output(rank).count > 0;
  if (is_wanted) memory.check_whole_message();
  return shortcuts;
}

}  // namespace

Proof prove_plans(std::span<const Plan* const> plans, std::span<const Schedule> schedules, const Layout& layout,
                  const Goal& goal, bool packed, std::span<const CallRows> rows) {
  Proof proof;
  try {
    if (plans.empty() || plans.size() != schedules.size())
      throw Refutation{fmt::format("there are {} plans of {} schedules", plans.size(), schedules.size())};
    const Plan& first = *plans[0];
    const std::size_t last = first.parts - 1;
    if (rows.empty() ? last * first.row_bytes + first.part(last).row_bytes != first.whole_row_bytes : last != 0)
      throw Refutation{"the parts together are not the call"};
    // Parts between the first and the last are like the first.
    for (const std::size_t part : {std::size_t{0}, last}) {
      proof = verify(schedules, layout, goal, check_plans(plans, part, schedules, layout, goal, packed, rows));
      if (!proof.holds || last == 0) return proof;
    }
  } catch (const Refutation& refutation) {
    proof = {};
    proof.reason = refutation.reason;
  }
  return proof;
}

}  // namespace tutti::internal
