#include "schedule/text.h"

#include <fmt/format.h>

#include <map>

#include "schedule/claimed_messages.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

std::string_view name_of(Space space) {
  switch (space) {
    case Space::input: return "input";
    case Space::output: return "output";
    case Space::scratch: return "scratch";
    case Space::relay: return "relay";
  }
  return "unknown";
}

std::string region_text(const Region& region, const std::string& slices) {
  const bool has_rows = is_scratch(region.space) || region.row != 0;
  return fmt::format("{}[{}slice {} chunk {}]", name_of(region.space),
                     has_rows ? fmt::format("row {} ", region.row) : "", slices, region.chunk);
}

std::string counted(int count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

std::string source_text(const Source& source, const Region& to) {
  if (source.peer == kLocal) return to_text(source.region);
  std::string text = fmt::format("{}from {}", source.partial ? "partial " : "", source.peer);
  if (source.region.slice != to.slice || source.region.chunk != to.chunk)
    text += fmt::format("[slice {} chunk {}]", source.region.slice, source.region.chunk);
  return text;
}

std::string tree_text(const Schedule& schedule, const Step& step) {
  struct Operand {
    std::string text;
    bool combined;
    std::string inside() const { return combined ? "(" + text + ")" : text; }
  };
  std::vector<Operand> stack;
  for (const Source& source : schedule.sources_of(step)) {
    stack.push_back({source_text(source, step.region), false});
    for (int joins = 0; joins < source.joins && stack.size() > 1; ++joins) {
      const Operand top = std::move(stack.back());
      stack.pop_back();
      stack.back() = {fmt::format("{} + {}", stack.back().inside(), top.inside()), true};
    }
  }
  if (stack.size() != 1) throw Error(ErrorCode::invalid_argument, "a reduction's tree does not end in one result");
  return stack[0].text;
}

// By peer.
using Claims = std::map<int, ClaimedMessages>;

// Says which message a receive takes where that is not the next one.
std::string receive_text(const Schedule& schedule, const Step& step, Claims& claims) {
  const std::uint32_t next = claims[step.peer].first_unclaimed();
  claims[step.peer].claim(step.message);
  return fmt::format("receive {} from {}", extent_text(schedule, step), step.peer) +
         (step.message == next ? "" : fmt::format(", message {}", step.message));
}

std::string step_text(const Schedule& schedule, const Step& step, Claims& claims) {
  switch (step.kind) {
    case StepKind::send: return fmt::format("send {} to {}", extent_text(schedule, step), step.peer);
    case StepKind::receive: return receive_text(schedule, step, claims);
    case StepKind::wait_send: return fmt::format("wait_send {} to {}", step.message, step.peer);
    case StepKind::wait_receive: return fmt::format("wait_receive {} from {}", step.message, step.peer);
    case StepKind::reduce: break;
  }
  for (const Source& source : schedule.sources_of(step))
    if (source.peer != kLocal) claims[source.peer].claim_first();
  const std::string region = to_text(step.region), tree = tree_text(schedule, step);
  return step.finish ? fmt::format("{} = finish({})", region, tree) : fmt::format("{} = {}", region, tree);
}

}  // namespace

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::send: return "send";
    case StepKind::receive: return "receive";
    case StepKind::reduce: return "reduce";
    case StepKind::wait_send: return "wait_send";
    case StepKind::wait_receive: return "wait_receive";
  }
  return "unknown";
}

std::string to_text(const Region& region) { return region_text(region, std::to_string(region.slice)); }

std::string extent_text(const Schedule& schedule, const Step& step) {
  return region_text(step.region, slices_text(slices_of(schedule, step)));
}

std::string slices_text(const std::vector<std::uint32_t>& slices) {
  std::string text;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    std::size_t last = i;
    while (last + 1 < slices.size() && slices[last + 1] == slices[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", slices[i]);
    if (last < i + 2) continue;  // two are named by themselves
    text += fmt::format("-{}", slices[last]);
    i = last;
  }
  return text;
}

std::vector<std::uint32_t> slices_of(const Schedule& schedule, const Step& step) {
  std::vector<std::uint32_t> slices;
  for (std::size_t i = 0; i < Schedule::rows_of(step); ++i) slices.push_back(schedule.row_of(step, i).slice);
  return slices;
}

std::string to_text(std::span<const Schedule> schedules) {
  std::string text;
  for (const Schedule& schedule : schedules) {
    text += fmt::format("rank {} of {}: {} x {}, {}\n", schedule.rank, schedules.size(),
                        counted(schedule.slices, schedule.exact_slices ? "exact slice" : "slice"),
                        counted(schedule.chunks, "chunk"), counted(schedule.scratch_rows, "scratch row"));
    Claims claims;
    for (const Step& step : schedule.steps) text += "  " + step_text(schedule, step, claims) + "\n";
  }
  return text;
}

}  // namespace tutti::internal
