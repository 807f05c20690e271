#include "schedule/verify_form.h"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "schedule/claimed_messages.h"
#include "schedule/text.h"

namespace tutti::internal {
namespace {

// Checks one rank's steps, counting messages as it goes.
class FormCheck {
 public:
  FormCheck(const Schedule& schedule, const Layout& layout, const Goal& goal)
      : sent(layout.ranks(), 0),
        received(layout.ranks(), 0),
        claimed(layout.ranks()),
        schedule_(schedule),
        goal_(goal),
        holds_(goal.collective, layout.ranks(), goal.root),
        inputs_(inputs_of(layout, goal.collective, schedule.rank)),
        posted_(layout.ranks(), 0) {}

  void run() {
    for (step_ = 0; step_ < static_cast<int>(schedule_.steps.size()); ++step_) check(schedule_.steps[step_]);
  }

  std::vector<std::uint32_t> sent, received;  // messages, by peer
  std::vector<ClaimedMessages> claimed;       // of those received

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw Refutation{where(schedule_.rank, step_, schedule_.steps[step_].kind) + ": " + what};
  }

  void check(const Step& step) {
    if (step.kind != StepKind::reduce) check_peer(step.peer);
    switch (step.kind) {
      case StepKind::send:
        check_extent(step);
        ++sent[step.peer];
        break;
      case StepKind::receive:
        check_extent(step);
        check_message(step);
        ++received[step.peer];
        ++posted_[step.peer];
        break;
      case StepKind::wait_send: check_wait(step, sent[step.peer], "sent to"); break;
      case StepKind::wait_receive: check_wait(step, posted_[step.peer], "posted from"); break;
      case StepKind::reduce: check_reduce(step); break;
      default: fail("there is no such kind of step");
    }
  }

  void check_peer(int peer) const {
    if (peer < 0 || peer >= static_cast<int>(sent.size())) fail(fmt::format("rank {} does not exist", peer));
    if (peer == schedule_.rank) fail("a rank sends no messages to itself");
  }

  void check_region(const Region& region) {
    const int rows = region.space == Space::input    ? inputs_
                     : region.space == Space::output ? 1
                                                     : schedule_.scratch_rows;
    if (region.space > Space::relay || region.row >= rows || std::cmp_greater_equal(region.slice, schedule_.slices) ||
        region.chunk >= schedule_.chunks)
      fail(to_text(region) + " does not exist");
    if (is_scratch(region.space))
      check_type(region);
    else
      check_held(region);
  }
  // Of a send or receive. Rows of which one begins where the one before ends: one behind the other in relay, or in the
  // caller's buffer.
  void check_extent(const Step& step) {
    const auto check_row = [&](const Region& row) {
      step.kind == StepKind::send ? check_region(row) : check_writable(row);
    };
    check_row(step.region);
    if (step.part_count == 0) return;
    if (!holds_.traits.has_rows() || holds_.traits.result != Result::moved || schedule_.chunks != 1)
      fail("a message of several rows needs rows of one length, in one chunk, which nothing combines");
    if (std::uint64_t{step.first_part} + step.part_count > schedule_.further_slices.size())
      fail("its further rows are outside the table");
    if (is_scratch(step.region.space) && step.region.row + step.part_count >= schedule_.scratch_rows)
      fail(fmt::format("it has {} rows from {} on, and there are only {}", Schedule::rows_of(step),
                       to_text(step.region), schedule_.scratch_rows));
    for (std::size_t i = 1; i < Schedule::rows_of(step); ++i) {
      const Region row = schedule_.row_of(step, i);
      check_row(row);
      if (!is_scratch(row.space) && index_of(row) != index_of(step.region) + static_cast<int>(i))
        fail(fmt::format("{} does not lie behind {}", to_text(row), to_text(schedule_.row_of(step, i - 1))));
    }
  }
  // Which row of the buffer it is. Requires check_held() to have passed.
  int index_of(const Region& region) const {
    const RowRange held = region.space == Space::input ? holds_.input(schedule_.rank) : holds_.output(schedule_.rank);
    return held.index(static_cast<int>(region.slice));
  }
  // All steps of a rank agree whether a row holds partial results (scratch) or elements (relay).
  void check_type(const Region& region) {
    if (!holds_.traits.has_bytes()) return;
    if (region.space == Space::scratch && !holds_.traits.combines())
      fail(to_text(region) + ": scratch holds partial results, and nothing is combined");
    if (spaces_.try_emplace(region.row, region.space).first->second != region.space)
      fail(to_text(region) + ": another step has the row in another space");
  }
  // A barrier's messages are empty, wherever they are said to lie.
  void check_held(const Region& region) const {
    const bool in = region.space == Space::input;
    const int slice = static_cast<int>(region.slice);
    if (!holds_.traits.has_bytes()) return;
    if (in ? holds_.gives(schedule_.rank, slice) : holds_.gets(schedule_.rank, slice)) return;
    fail(fmt::format("{} does not exist: the {} of {} is {}", to_text(region), in ? "input" : "output",
                     to_string(goal_.collective), owner_of(in ? holds_.traits.input : holds_.traits.output)));
  }
  static std::string_view owner_of(Held held) {
    switch (held) {
      case Held::own: return "the rank's own slice alone";
      case Held::at_root: return "the root's alone";
      case Held::on_first: return "of rank 0";
      case Held::behind_first: return "of all ranks but 0";
      case Held::to_each: return "what the rank has for each";
      case Held::from_each: return "what the rank gets from each";
      case Held::nothing:
      case Held::all: break;
    }
    return "not there";
  }
  void check_writable(const Region& region) {
    check_region(region);
    if (region.space == Space::input) fail("the caller's input is never written");
  }

  // Ascending, so that a transport can queue receives.
  void check_message(const Step& step) {
    std::uint32_t& next = next_posted_[step.peer];
    if (step.message < next)
      fail(fmt::format("takes message {} of rank {} after a receive of message {}", step.message, step.peer, next - 1));
    next = step.message + 1;
    if (!claimed[step.peer].claim(step.message))
      fail(fmt::format("takes message {} of rank {}, which a reduce before it has taken", step.message, step.peer));
  }

  void check_wait(const Step& step, std::uint32_t posted, const char* verb) const {
    if (step.message > posted)
      fail(fmt::format("waits for {} messages, but only {} were {} rank {} before it", step.message, posted, verb,
                       step.peer));
  }

  void check_reduce(const Step& step) {
    check_writable(step.region);
    if (step.part_count == 0) fail("has no sources");
    if (std::uint64_t{step.first_part} + step.part_count > schedule_.sources.size())
      fail("its sources are outside the table");
    int depth = 0;
    for (const Source& source : schedule_.sources_of(step)) {
      check_source(source, step.region);
      depth += 1 - source.joins;
      if (depth < 1) fail("its tree joins more partial results than there are");
    }
    if (depth != 1) fail(fmt::format("its tree leaves {} results, not one", depth));
    check_result(step);
  }

  void check_source(const Source& source, const Region& to) {
    if (source.peer == kLocal) {
      check_region(source.region);
      if (source.partial != (source.region.space == Space::scratch))
        fail(to_text(source.region) + (source.partial ? " holds no partial results" : " holds partial results"));
    } else {
      check_peer(source.peer);
      ++received[source.peer];
      claimed[source.peer].claim_first();
    }
    if (source.region.slice != to.slice || source.region.chunk != to.chunk)
      fail(fmt::format("source {} and result {} are different parts of the message", to_text(source.region),
                       to_text(to)));
  }

  // Scratch holds what is unfinished; output and relay what is finished or was never combined.
  void check_result(const Step& step) const {
    if (step.region.space == Space::scratch) {
      if (step.finish) fail("a finished result does not belong in scratch, which holds partial results");
    } else if (!step.finish && (step.part_count > 1 || schedule_.sources_of(step)[0].partial)) {
      fail("a partial result is stored unfinished where elements are");
    }
  }

  const Schedule& schedule_;
  const Goal& goal_;
  const Distribution holds_;
  int inputs_;
  int step_ = 0;
  std::vector<std::uint32_t> posted_;         // receive steps, by peer
  std::map<std::uint16_t, Space> spaces_;     // of rows of scratch and relay, as the first step that names one has it
  std::map<int, std::uint32_t> next_posted_;  // above the messages they take
};

void check_frame(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal) {
  const int ranks = layout.ranks();
  if (ranks == 0 || static_cast<int>(schedules.size()) != ranks)
    throw Refutation{fmt::format("there are {} schedules for {} ranks", schedules.size(), ranks)};
  const CollectiveTraits& traits = traits_of(goal.collective);
  if (traits.has_root() && (goal.root < 0 || goal.root >= ranks))
    throw Refutation{fmt::format("root {} does not exist", goal.root)};
  const Schedule& first = schedules.front();
  for (int rank = 0; rank < ranks; ++rank) {
    const Schedule& schedule = schedules[rank];
    if (schedule.rank != rank) throw Refutation{fmt::format("schedule {} says it is rank {}'s", rank, schedule.rank)};
    if (schedule.slices != first.slices || schedule.chunks != first.chunks ||
        schedule.exact_slices != first.exact_slices)
      throw Refutation{fmt::format("rank {} cuts messages otherwise than rank 0", rank)};
  }
  if (first.slices < 1 || first.chunks < 1) throw Refutation{"there must be at least one slice and one chunk"};
  if (traits.has_rows() && (first.slices != traits.rows(ranks) || !first.exact_slices))
    throw Refutation{fmt::format("{} needs {} exact slices", to_string(goal.collective), traits.rows(ranks))};
}

}  // namespace

std::string where(int rank, int step, StepKind kind) {
  return fmt::format("rank {}, step {} ({})", rank, step, to_string(kind));
}

void check_form(std::span<const Schedule> schedules, const Layout& layout, const Goal& goal) {
  check_frame(schedules, layout, goal);
  std::vector<FormCheck> checks;
  for (const Schedule& schedule : schedules) checks.emplace_back(schedule, layout, goal).run();
  for (int from = 0; from < layout.ranks(); ++from)
    for (int to = 0; to < layout.ranks(); ++to) {
      if (checks[from].sent[to] != checks[to].received[from])
        throw Refutation{fmt::format("rank {} sends {} messages to rank {}, which receives {} from it", from,
                                     checks[from].sent[to], to, checks[to].received[from])};
      if (checks[to].claimed[from].has_gap())
        throw Refutation{fmt::format("rank {} never takes message {} of rank {}, but a later one", to,
                                     checks[to].claimed[from].first_unclaimed(), from)};
    }
}

}  // namespace tutti::internal
