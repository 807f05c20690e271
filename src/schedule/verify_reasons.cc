// Why an execution fails, in sentences.
#include <fmt/format.h>

#include <utility>

#include "schedule/text.h"
#include "schedule/verify_execution.h"
#include "schedule/verify_form.h"

namespace tutti::internal {

void Execution::fail(int rank, int step, const std::string& what) const {
  throw Refutation{where(rank, step, schedules_[rank].steps[step].kind) + ": " + what};
}

void Execution::race(const Access& earlier, const Access& later) const {
  const auto party = [](const Access& access) {
    return access.message ? fmt::format("rank {}", access.peer) : std::string("this rank");
  };
  const StepKind kind = schedules_[earlier.rank].steps[earlier.step].kind;
  fail(later.rank, later.step,
       fmt::format("{} {} {} by {} while {} may still be {} {} (step {}, {})", to_text(later.region),
                   later.message ? "may be" : "is", later.write ? "written" : "read", party(later), party(earlier),
                   earlier.write ? "writing" : "reading", to_text(earlier.region), earlier.step, to_string(kind)));
}

std::string Execution::waits_for(int rank, int& peer) {
  const Rank& self = ranks_[rank];
  const Step& step = schedules_[rank].steps[self.next];
  peer = step.kind == StepKind::reduce ? schedules_[rank].sources_of(step)[self.arrived.size()].peer : step.peer;
  const std::string here = where(rank, self.next, step.kind);
  if (step.kind == StepKind::wait_send)
    return fmt::format("{} waits for rank {} to take message {}", here, peer, channel(rank, peer).taken);
  const Channel& from = channel(peer, rank);
  if (step.kind == StepKind::reduce)
    return fmt::format("{} waits for message {} from rank {}", here, from.claimed.first_unclaimed(), peer);
  std::string text = fmt::format("{} waits for posted receive {} from rank {}", here, step.message - 1, peer);
  if (from.taken >= from.sent) return text;
  const int other = std::exchange(peer, rank);
  return fmt::format("{}, before which comes message {} of rank {}, which only a later step of its own takes", text,
                     from.taken, other);
}

// Messages sent equal messages received, so whoever is waited for has not ended either, and a rank that waits for
// itself has not: the chain runs into a cycle.
void Execution::deadlock() {
  int rank = 0;
  while (ranks_[rank].next == static_cast<int>(schedules_[rank].steps.size())) ++rank;
  std::string reason = "deadlock: ";
  std::vector<bool> named(ranks_.size(), false);
  for (int count = 0; !named[rank]; ++count) {
    named[rank] = true;
    const std::string waits = waits_for(rank, rank);
    if (count < 3) reason += (count > 0 ? "; " : "") + waits;
    if (count == 3) reason += "; and so on";
  }
  throw Refutation{reason};
}

}  // namespace tutti::internal
