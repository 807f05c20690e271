// Why it is enough to execute the steps in their order, with a few checks more, to prove every choice of shortcuts.
//
// A send done by a reduce. The message is the same if the reduce makes what the send would read: compared as symbols.
// It has the same number if no send to that peer stands between. Two things differ in time, and both are taken at their
// worst. The peer may have the message when the reduce is done, so it may rely on what was known then and on nothing
// later. And the pass writes to the peer's memory from its beginning on. What happens on this rank between that
// beginning and the send, and might have to come before that write, is the end of the pass's own reading. Of the peer's
// memory it can read only what the peer has lent it. Where that is the very memory written to, it has the same slice,
// chunk and type, and a pass reads each element before it writes it. The other loans of this rank's sends last as if
// they had been lent: longer than need be. If a copy does the send of what it copies, the peer may have the message
// before the copy begins: so it may rely on nothing that the copy has done.
//
// A reduce that finishes. Only waits stand between. If all of them are over when the pass begins, they teach what they
// would have taught later, and the memory that they wait for is free. The pass itself reads, besides messages, regions
// of the slice and chunk that it writes: each element before it is written. So the memory may be written. But what the
// reduce would have left in scratch may never be there: nobody else may read it. It need not wait for loans of inputs
// if only waits come behind it and the output is apart from the input: nobody reads what it writes, and no step relies
// on what the waits would have taught (plan_proof.cc).
#include "schedule/verify_shortcuts.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "schedule/text.h"
#include "schedule/verify_execution.h"
#include "schedule/verify_form.h"

namespace tutti::internal {
namespace {

class ShortcutCheck {
 public:
  ShortcutCheck(const Schedule& schedule, std::span<const Shortcut> shortcuts)
      : schedule_(schedule), shortcuts_(shortcuts) {}

  void run() {
    std::set<std::uint32_t> done;
    for (const Shortcut& shortcut : shortcuts_) {
      const auto [reduce, other] = shortcut;
      if (other >= schedule_.steps.size() || reduce >= other) fail(shortcut, "there are no such steps in this order");
      if (step(reduce).kind != StepKind::reduce) fail(shortcut, "the first is no reduce");
      if (!done.insert(other).second) fail(shortcut, "another shortcut does this step too");
      step(other).kind == StepKind::send ? check_send(shortcut) : check_finish(shortcut);
    }
  }

 private:
  const Step& step(std::uint32_t number) const { return schedule_.steps[number]; }

  [[noreturn]] void fail(const Shortcut& shortcut, const std::string& why) const {
    throw Refutation{fmt::format("rank {}: step {} cannot do the work of step {}: {}", schedule_.rank, shortcut.reduce,
                                 shortcut.other, why)};
  }

  void check_send(const Shortcut& shortcut) const {
    if (Schedule::rows_of(step(shortcut.other)) != 1) fail(shortcut, "it makes one region, and several rows are sent");
    const Region& made = step(shortcut.reduce).region;
    const Region& sent = step(shortcut.other).region;
    if (made.slice != sent.slice || made.chunk != sent.chunk ||
        (made.space == Space::scratch) != (sent.space == Space::scratch))
      fail(shortcut, fmt::format("it makes {}, and {} is sent", to_text(made), to_text(sent)));
    for (std::uint32_t i = shortcut.reduce + 1; i < shortcut.other; ++i)
      if (step(i).kind == StepKind::send && step(i).peer == step(shortcut.other).peer)
        fail(shortcut, fmt::format("step {} sends to the same peer, and would come later", i));
  }

  void check_finish(const Shortcut& shortcut) const {
    const auto [reduce, other] = shortcut;
    for (std::uint32_t i = reduce + 1; i < other; ++i)
      if (step(i).kind != StepKind::wait_send && step(i).kind != StepKind::wait_receive)
        fail(shortcut, fmt::format("step {} would be left out", i));
    for (const Shortcut& also : shortcuts_)
      if (also.reduce == other) fail(shortcut, fmt::format("that would do the work of step {}", also.other));
    const Step& last = step(other);
    if (last.kind != StepKind::reduce || !last.finish) fail(shortcut, "it finishes nothing");
    const Source& source = schedule_.sources_of(last)[0];
    if (last.part_count != 1 || source.peer != kLocal || source.region.space != Space::scratch ||
        source.region != step(reduce).region)
      fail(shortcut, "it finishes something else");
  }

  const Schedule& schedule_;
  std::span<const Shortcut> shortcuts_;
};

}  // namespace

void check_shortcuts(std::span<const Schedule> schedules, std::span<const std::vector<Shortcut>> shortcuts) {
  if (!shortcuts.empty() && shortcuts.size() != schedules.size())
    throw Refutation{fmt::format("there are shortcuts of {} ranks, and {} ranks", shortcuts.size(), schedules.size())};
  for (std::size_t rank = 0; rank < shortcuts.size(); ++rank) ShortcutCheck(schedules[rank], shortcuts[rank]).run();
}

void Execution::note_shortcuts(int rank, int value) {
  if (shortcuts_.empty()) return;
  Rank& self = ranks_[rank];
  for (const Shortcut& shortcut : shortcuts_[rank]) {
    if (static_cast<int>(shortcut.reduce) != self.next) continue;
    Early& early = self.early[static_cast<int>(shortcut.other)];
    early = {self.clock, self.next, value};
    const Step &step = schedules_[rank].steps[self.next], &other = schedules_[rank].steps[shortcut.other];
    const bool sends_source = other.kind == StepKind::send && other.region != step.region;
    early.clock[rank] = self.next + (sends_source ? 0 : 1);  // whether the reduce itself has happened
  }
}

std::vector<int> Execution::clock_of_send(int rank, int value) {
  Rank& self = ranks_[rank];
  const auto early = self.early.extract(self.next);
  if (early.empty()) {
    Clock clock = self.clock;
    clock[rank] = self.next + 1;  // the send itself has happened
    return clock;
  }
  auto& [clock, reduce, made] = early.mapped();
  if (made != value)
    fail(rank, self.next,
         fmt::format("step {} may do it, but that makes {}, and {} is sent", reduce, expressions_.describe(made),
                     expressions_.describe(value)));
  return std::move(clock);
}

void Execution::check_finish(int rank, const Step& step, int value) {
  const Rank& self = ranks_[rank];
  const auto early = self.early.find(self.next);
  if (early == self.early.end()) return;
  if (early->second.value != value)
    fail(rank, self.next,
         fmt::format("step {} may do it, but makes {}, and {} is finished", early->second.reduce,
                     expressions_.describe(early->second.value), expressions_.describe(value)));
  cell(rank, schedules_[rank].sources_of(step)[0].region).value.reset();
}

}  // namespace tutti::internal
