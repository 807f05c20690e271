#include "schedule/builder.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "tutti/error.h"

namespace tutti::internal {

Builder::Builder(int rank, int slices, int chunks, bool exact_slices) {
  schedule_.rank = rank;
  schedule_.slices = slices;
  schedule_.chunks = chunks;
  schedule_.exact_slices = exact_slices;
}

Source Builder::local(Region region) { return {kLocal, region, 0, region.space == Space::scratch}; }
Source Builder::message(int peer, Region shape, bool partial) {
  return {peer, {.slice = shape.slice, .chunk = shape.chunk}, 0, partial};
}

// In place, input row 0 and output are one memory; in scratch the slice only says a length.
Region Builder::memory_of(Region region) {
  if (region.space == Space::output) region.space = Space::input, region.row = 0;
  if (is_scratch(region.space)) region.slice = 0;
  return region;
}

void Builder::wait(StepKind kind, const Lent& lent) {
  std::uint32_t& waited = (kind == StepKind::wait_send ? sent_waited_ : received_waited_)[lent.peer];
  if (waited >= lent.message) return;
  waited = lent.message;
  schedule_.steps.push_back({.kind = kind, .peer = lent.peer, .message = lent.message});
}

void Builder::before_read(const Region& region) {
  const auto posted = receiving_.find(memory_of(region));
  if (posted == receiving_.end()) return;
  wait(StepKind::wait_receive, posted->second);
  receiving_.erase(posted);
}

void Builder::before_write(const Region& region) {
  before_read(region);
  const auto lent = sending_.find(memory_of(region));
  if (lent == sending_.end()) return;
  for (const Lent& to : lent->second) wait(StepKind::wait_send, to);
  sending_.erase(lent);
}

void check_scratch_rows(std::int64_t rows) {
  constexpr std::int64_t kMost = std::numeric_limits<decltype(Region::row)>::max();
  if (rows > kMost)
    throw Error(ErrorCode::invalid_argument, "a rank needs more than " + std::to_string(kMost) +
                                                 " rows of scratch, which is as many as have numbers");
}

int Builder::new_scratch_rows(int count) {
  check_scratch_rows(std::int64_t{schedule_.scratch_rows} + count);
  return std::exchange(schedule_.scratch_rows, schedule_.scratch_rows + count);
}

// The step, whose further slices are in the schedule already.
Step Builder::message_step(StepKind kind, int peer, const Extent& lent) {
  std::vector<std::uint32_t>& slices = schedule_.further_slices;
  const Step step{.kind = kind,
                  .part_count = static_cast<std::uint16_t>(lent.further.size()),
                  .peer = peer,
                  .region = lent.first,
                  .first_part = static_cast<std::uint32_t>(lent.further.empty() ? 0 : slices.size())};
  slices.insert(slices.end(), lent.further.begin(), lent.further.end());
  return step;
}

void Builder::send(int peer, const Extent& from) {
  const Step step = message_step(StepKind::send, peer, from);
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) before_read(schedule_.row_of(step, i));
  schedule_.steps.push_back(step);
  const Lent lent{peer, ++sent_[peer]};
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i)
    sending_[memory_of(schedule_.row_of(step, i))].push_back(lent);
}

void Builder::receive(int peer, const Extent& to) {
  Step step = message_step(StepKind::receive, peer, to);
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) {
    const Region row = schedule_.row_of(step, i);
    before_read(row);
    // What is lent to other peers must be back first. What is lent to this very peer need not be: its message is the
    // answer to what it read (the verifier checks that it is).
    if (const auto lent = sending_.find(memory_of(row)); lent != sending_.end())
      for (const Lent& other : lent->second)
        if (other.peer != peer) wait(StepKind::wait_send, other);
  }
  step.message = taken_[peer]++;
  schedule_.steps.push_back(step);
  const Lent lent{peer, ++received_[peer]};
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) receiving_[memory_of(schedule_.row_of(step, i))] = lent;
}

void Builder::reduce(std::vector<Source> sources, Region to, bool finish) {
  for (const Source& source : sources) {
    if (source.peer == kLocal) {
      before_read(source.region);
    } else {
      ++taken_[source.peer];
    }
  }
  before_write(to);
  schedule_.steps.push_back({.kind = StepKind::reduce,
                             .finish = finish,
                             .part_count = static_cast<std::uint16_t>(sources.size()),
                             .region = to,
                             .first_part = static_cast<std::uint32_t>(schedule_.sources.size())});
  schedule_.sources.insert(schedule_.sources.end(), sources.begin(), sources.end());
}

Schedule Builder::build() && {
  post_early();
  // In the order of the steps, as in their text.
  const std::vector<std::uint32_t> written = std::exchange(schedule_.further_slices, {});
  for (Step& step : schedule_.steps) {
    if (step.kind == StepKind::reduce || step.part_count == 0) continue;
    const auto begin = written.begin() + std::exchange(step.first_part, schedule_.further_slices.size());
    schedule_.further_slices.insert(schedule_.further_slices.end(), begin, begin + step.part_count);
  }
  return std::move(schedule_);
}

// Whether a send or receive lends the memory of `region`.
bool Builder::overlap(const Step& message, const Region& region) const {
  for (std::size_t i = 0; i < Schedule::rows_of(message); ++i)
    if (memory_of(schedule_.row_of(message, i)) == memory_of(region)) return true;
  return false;
}
bool Builder::overlap(const Step& message, const Step& other) const {
  for (std::size_t i = 0; i < Schedule::rows_of(other); ++i)
    if (overlap(message, schedule_.row_of(other, i))) return true;
  return false;
}

// Whether `receive` may stand before `step` rather than behind it: not where the step uses its memory, lends it to
// another peer, or waits. Lent to the very peer whose message fills it is fine, that message being the answer to what
// the peer read.
bool Builder::may_pass(const Step& receive, const Step& step) const {
  switch (step.kind) {
    case StepKind::send: return step.peer == receive.peer || !overlap(receive, step);
    case StepKind::receive: return step.peer != receive.peer && !overlap(receive, step);
    case StepKind::reduce:
      return !overlap(receive, step.region) &&
             std::ranges::none_of(schedule_.sources_of(step), [&](const Source& source) {
               return source.peer == kLocal && overlap(receive, source.region);
             });
    case StepKind::wait_send:
    case StepKind::wait_receive: return false;
  }
  return false;
}

namespace {

// Whether steps[at] is a send of what the reduce before it, or before others of its like, makes.
bool is_push(const std::vector<Step>& steps, std::size_t at) {
  std::size_t made = at;
  while (made > 0 && steps[made].kind == StepKind::send && steps[made].region == steps[at].region) --made;
  return made < at && steps[made].kind == StepKind::reduce && steps[made].region == steps[at].region;
}

}  // namespace

// A peer that finds a receive posted can write its message straight into place, so each is posted as early as it may
// be, but for what the executor does in one pass: a reduce and the sends of its result. Receives that end up side by
// side keep their order.
void Builder::post_early() {
  std::vector<Step>& steps = schedule_.steps;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (steps[i].kind != StepKind::receive) continue;
    std::size_t to = i;
    while (to > 0 && may_pass(steps[i], steps[to - 1])) --to;
    while (to < i && (steps[to].kind == StepKind::receive || is_push(steps, to))) ++to;
    std::rotate(steps.begin() + to, steps.begin() + i, steps.begin() + i + 1);
  }
}

namespace {

// Adds one to joins[i] for every inner node of T inside [lo, hi) whose last covering node is i. Nothing where [lo, hi)
// is itself one of the given nodes.
void join_subtrees(const std::vector<int>& bounds, int lo, int hi, std::vector<std::uint8_t>& joins) {
  const auto first = std::lower_bound(bounds.begin(), bounds.end(), lo);
  if (first != bounds.end() && first + 1 != bounds.end() && *first == lo && *(first + 1) == hi) return;
  int m = 1;
  while (m * 2 < hi - lo) m *= 2;
  join_subtrees(bounds, lo, lo + m, joins);
  join_subtrees(bounds, lo + m, hi, joins);
  const auto last = std::lower_bound(bounds.begin(), bounds.end(), hi) - bounds.begin() - 1;
  ++joins[last];
}

}  // namespace

std::vector<std::uint8_t> canonical_joins(const std::vector<int>& bounds) {
  std::vector<std::uint8_t> joins(bounds.size() - 1, 0);
  if (joins.size() > 1) join_subtrees(bounds, bounds.front(), bounds.back(), joins);
  return joins;
}

}  // namespace tutti::internal
