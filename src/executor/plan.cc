#include "executor/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>

#include "executor/plan_copier.h"
#include "executor/plan_cpu_cache.h"
#include "executor/plan_fusing.h"
#include "executor/rows.h"
#include "schedule/leaves.h"
#include "tutti/error.h"
#include "types/collective.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kLineBytes = 64;

// Whether a host's inputs and outputs, of all its ranks, are too large for the cache to keep until the next call. Then
// they are stored past it. With 32 MiB of cache, 2 ranks, symmetric memory: all_reduce of 2 MiB takes 50 us through it,
// 159 past it; all_gather of 8 MiB 149 and 394.
bool outgrows(std::size_t bytes, std::size_t cache_bytes) { return bytes > cache_bytes / 4 * 3; }

// Whether some of its scratch holds partial results. Relays hold elements.
bool has_partials(const Schedule& schedule) {
  const auto is_partial = [](const auto& of) { return of.region.space == Space::scratch; };
  return std::ranges::any_of(schedule.steps, is_partial) || std::ranges::any_of(schedule.sources, is_partial);
}

// Makes places of regions, and steps of a plan of those of a schedule.
class Places {
 public:
  // rows: of slices that are exact; others are those of the partition.
  Places(const Schedule& schedule, const Partition& partition, const Rows& rows, DType dtype)
      : schedule_(schedule),
        partition_(partition),
        rows_(rows),
        exact_(schedule.exact_slices),
        element_(size_of(dtype)),
        accumulation_(accumulation_size_of(dtype)),
        chunks_(static_cast<std::size_t>(schedule.chunks)) {
    if (schedule.scratch_rows == 0) return;
    std::size_t longest = 0;
    for (std::uint32_t s = 0; s < static_cast<std::uint32_t>(schedule.slices); ++s)
      for (std::uint16_t c = 0; c < schedule.chunks; ++c)
        longest = std::max(longest, range({.slice = s, .chunk = c}).size());
    const bool side_by_side = !schedule.further_slices.empty();
    const std::size_t bytes = longest * (has_partials(schedule) ? accumulation_ : element_);
    scratch_cell_ = side_by_side ? longest * element_ : (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }

  std::size_t scratch_row_bytes() const { return chunks_ * scratch_cell_; }

  Place place(const Region& region) const {
    if (is_scratch(region.space)) return {Space::scratch, (region.row * chunks_ + region.chunk) * scratch_cell_};
    const std::size_t row = exact_ ? rows_.begin(region.space, static_cast<int>(region.slice)) : 0;
    return {region.space, (region.row * partition_.count + row + range(region).begin) * element_};
  }

  PlanStep step(const Step& step) const {
    const Region& region = step.region;
    const std::size_t element = region.space == Space::scratch ? accumulation_ : element_;
    switch (step.kind) {
      case StepKind::send:
        return SendStep{.peer = step.peer, .from = place(region), .bytes = message_count(step) * element};
      case StepKind::receive:
        return ReceiveStep{
            .peer = step.peer, .message = step.message, .to = place(region), .bytes = message_count(step) * element};
      case StepKind::reduce:
        return ReduceStep{.to = place(region),
                          .count = count(region),
                          .element_bytes = static_cast<std::uint8_t>(element),
                          .partial = region.space == Space::scratch,
                          .finish = step.finish,
                          .first_source = step.first_part,
                          .source_count = step.part_count};
      case StepKind::wait_send:
      case StepKind::wait_receive: break;
    }
    return WaitStep{.for_sends = step.kind == StepKind::wait_send, .peer = step.peer, .messages = step.message};
  }

  PlanSource source(const Source& source) const {
    const Place from = source.peer == kLocal ? place(source.region) : Place{};
    return {.peer = source.peer,
            .joins = source.joins,
            .partial = source.partial,
            .element_bytes = static_cast<std::uint8_t>(source.partial ? accumulation_ : element_),
            .space = from.space,
            .offset = from.offset};
  }

 private:
  std::size_t count(const Region& region) const { return range(region).size(); }
  // Of all rows, which must lie side by side.
  std::size_t message_count(const Step& step) const {
    std::size_t elements = count(step.region);
    for (std::size_t i = 1; i < Schedule::rows_of(step); ++i) {
      const Region row = schedule_.row_of(step, i);
      if (place(row).offset != place(step.region).offset + elements * element_)
        throw Error(ErrorCode::invalid_argument, "a message is of rows that do not lie side by side");
      elements += count(row);
    }
    return elements;
  }
  // Of a row, or of all elements.
  ElementRange range(const Region& region) const {
    if (!exact_) return partition_.chunk(region.slice, region.chunk);
    Partition row = partition_;
    row.count = rows_.length(static_cast<int>(region.slice));
    row.slices = 1;
    return row.chunk(0, region.chunk);
  }

  const Schedule& schedule_;
  const Partition& partition_;
  const Rows& rows_;
  bool exact_;
  std::size_t element_, accumulation_, chunks_;
  // A fixed stride, as the same row holds chunks of slices of different lengths in turn. If messages are of several
  // rows, all rows have one length, and lie side by side.
  std::size_t scratch_cell_ = 0;
};

// Prepares the reductions. If a reduce may also do its finisher's work, the reduction for both lies behind its own.
void make_reductions(Plan& plan, std::uint32_t leaves, const CustomOperator* custom) {
  std::vector<ReduceSource> shape;
  for (PlanStep& any : plan.steps) {
    auto* const step = std::get_if<ReduceStep>(&any);
    if (step == nullptr) continue;
    shape.clear();
    for (const PlanSource& source : plan.sources_of(*step))
      shape.push_back({.joins = source.joins, .partial = source.partial});
    ReduceSpec spec{.dtype = plan.call.dtype,
                    .op = combined_as(plan.call.op),
                    .finish = step->finish,
                    .leaves = leaves,
                    .custom = custom};
    step->reduction = static_cast<std::uint32_t>(plan.reductions.size());
    plan.reductions.emplace_back(spec, shape);
    plan.most_sources = std::max<std::size_t>(plan.most_sources, step->source_count);
    plan.most_pushes = std::max<std::size_t>(plan.most_pushes, step->pushes);
    if (step->finisher == 0) continue;
    spec.finish = true;
    plan.reductions.emplace_back(spec, shape);
  }
}

// Counts the traffic with each peer.
void count_messages(Plan& plan, bool leaves_copies) {
  std::map<int, Traffic> by_peer;
  for (const PlanStep& step : plan.steps) {
    if (const auto* const send = std::get_if<SendStep>(&step)) {
      Traffic& traffic = by_peer[send->peer];
      ++traffic.sends;
      if (!leaves_copies || send->from.space != Space::scratch) traffic.lends = traffic.sends;
    }
    if (const auto* const receive = std::get_if<ReceiveStep>(&step)) {
      ++by_peer[receive->peer].receives;
      ++by_peer[receive->peer].arrivals;
    }
    if (const auto* const reduce = std::get_if<ReduceStep>(&step))
      for (const PlanSource& source : plan.sources_of(*reduce))
        if (source.peer != kLocal) ++by_peer[source.peer].arrivals;
  }
  for (const auto& [peer, traffic] : by_peer) {
    plan.peers.push_back(peer);
    plan.traffic.push_back(traffic);
    plan.leaves_copies |= traffic.lends < traffic.sends;
  }
}

// A channel exposes one message at a time. With one leaf a rank no algorithm asks for more.
void require_one_message_a_peer(std::span<const Source> sources) {
  std::set<int> peers;
  for (const Source& source : sources)
    if (source.peer != kLocal && !peers.insert(source.peer).second)
      throw Error(ErrorCode::invalid_argument, "one step takes two messages of rank " + std::to_string(source.peer) +
                                                   "; this spread of leaves over ranks cannot be executed yet");
}

}  // namespace

Partition partition_for(const Schedule& schedule, DType dtype, std::size_t total) {
  const std::size_t grain = kLineBytes / size_of(dtype);
  return {.count = total,
          .slices = static_cast<std::size_t>(schedule.slices),
          .chunks = static_cast<std::size_t>(schedule.chunks),
          .slice_grain = schedule.exact_slices ? 1 : grain,
          .chunk_grain = grain};
}

std::size_t total_count(const Call& call, int ranks) {
  return call.count * static_cast<std::size_t>(traits_of(call.collective).buffer_rows(ranks));
}

namespace {

// What is known of the caller's buffers, and of those that a part of `count` elements works in.
void describe_buffers(Plan& plan, const Distribution& holds, int rank, std::size_t count, bool in_place) {
  const std::size_t element = size_of(plan.call.dtype);
  const RowRange in = holds.input(rank), out = holds.output(rank);
  const auto input_rows = static_cast<std::size_t>(in.count), output_rows = static_cast<std::size_t>(out.count);
  plan.row_bytes = count * element;
  plan.whole_row_bytes = plan.call.count * element;
  plan.input_bytes = input_rows * plan.whole_row_bytes;
  plan.output_bytes = output_rows * plan.whole_row_bytes;
  if (holds.traits.exchanges()) {
    plan.output_slot = input_rows * plan.row_bytes;
  } else if (in.count > 0 && out.count > 0) {
    const int first = std::min(in.at, out.at);
    plan.input_slot = static_cast<std::size_t>(in.at - first) * plan.row_bytes;
    plan.output_slot = static_cast<std::size_t>(out.at - first) * plan.row_bytes;
  }
  plan.slot_bytes =
      std::max(plan.input_slot + input_rows * plan.row_bytes, plan.output_slot + output_rows * plan.row_bytes);
  const auto copies = [&](std::size_t slot, std::size_t rows) -> RowCopy {
    return {.buffer_stride = plan.whole_row_bytes,
            .slot = slot,
            .slot_stride = plan.row_bytes,
            .row_bytes = plan.row_bytes,
            .rows = rows};
  };
  plan.fetches = {copies(plan.input_slot, input_rows)};
  plan.deliveries = {copies(plan.output_slot, output_rows)};
  plan.in_place = holds.traits.exchanges() && !in_place
                      ? kNotInPlace
                      : static_cast<std::ptrdiff_t>(out.at - in.at) * static_cast<std::ptrdiff_t>(plan.whole_row_bytes);
}

// One right behind the other.
BufferRows packed(BufferRows rows) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < rows.counts.size(); ++i) {
    rows.begins[i] = begin;
    begin += rows.counts[i];
  }
  return rows;
}

// The same of rows of different lengths. In a slot, the output is behind the input.
void describe_unequal_buffers(Plan& plan, const Distribution& holds, int rank, const CallRows& rows, bool in_place) {
  const std::size_t element = size_of(plan.call.dtype);
  plan.input_bytes = rows.input.extent() * element;
  plan.output_bytes = rows.output.extent() * element;
  plan.output_slot = rows.input.total() * element;
  plan.slot_bytes = plan.output_slot + rows.output.total() * element;
  const auto copies = [&](const BufferRows& of, std::size_t slot, std::vector<RowCopy>& to) {
    for (std::size_t i = 0; i < of.counts.size(); ++i) {
      const std::size_t bytes = of.counts[i] * element;
      plan.row_bytes = std::max(plan.row_bytes, bytes);
      if (bytes > 0) to.push_back({.buffer = of.begins[i] * element, .slot = slot, .row_bytes = bytes, .rows = 1});
      slot += bytes;
    }
  };
  copies(rows.input, 0, plan.fetches);
  copies(rows.output, plan.output_slot, plan.deliveries);
  if (holds.traits.exchanges()) {
    plan.in_place = in_place ? 0 : kNotInPlace;
  } else if (holds.gives(rank, rank) && holds.gets(rank, rank)) {  // the row that both buffers have
    const Rows of(holds, rank, rows);
    plan.in_place = (static_cast<std::ptrdiff_t>(of.begin(Space::input, rank)) -
                     static_cast<std::ptrdiff_t>(of.begin(Space::output, rank))) *
                    static_cast<std::ptrdiff_t>(element);
  }
}

// Of the inputs and outputs of all ranks of this host. Where rows are unequal or packed, the other ranks' are taken to
// be as this one's. Of what is packed, a call has a slot at a time, and copies it.
std::size_t buffer_bytes(const Plan& plan, const Distribution& holds, int rank, const Layout& layout, const Cut& cut) {
  std::size_t bytes = 0;
  for (int other = 0; other < layout.ranks(); ++other) {
    if (layout.host[other] != layout.host[rank]) continue;
    const auto rows = static_cast<std::size_t>(holds.input(other).count + holds.output(other).count);
    if (cut.packed) {
      bytes += 2 * plan.slot_bytes;
    } else {
      bytes += cut.rows != nullptr ? plan.slot_bytes : rows * plan.whole_row_bytes;
    }
  }
  return bytes;
}

// The plan of a part of `count` elements.
std::unique_ptr<Plan> make_part(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks, const Host& host, std::size_t count, const Cut& cut,
                                const CustomOperator* custom) {
  Call of_part = call;
  of_part.count = count;
  const std::size_t total = cut.rows != nullptr ? count : total_count(of_part, layout.ranks());
  const Distribution holds(call.collective, layout.ranks(), call.root);
  const Message message{.root = call.root,
                        .chunks = entry.pipelined ? chunks : 1,
                        .in_place = cut.in_place,
                        .copies_once = entry.copied_once != Copied::nothing && cut.copies_once,
                        .copies_inputs = cut.copies_inputs,
                        .ahead = cut.ahead};
  const Schedule schedule = entry.schedule(rank, layout, message);
  const Partition partition = partition_for(schedule, call.dtype, total);
  CallRows unequal;
  if (cut.rows != nullptr)
    unequal = cut.packed ? CallRows{packed(cut.rows->input), packed(cut.rows->output)} : *cut.rows;
  const Rows rows =
      cut.rows != nullptr ? Rows(holds, rank, unequal) : Rows(holds, rank, count, cut.packed ? count : call.count);
  const Places places(schedule, partition, rows, call.dtype);

  auto plan = std::make_unique<Plan>();
  plan->call = call;
  plan->tag = call.pack();
  plan->scratch_bytes = schedule.scratch_rows * places.scratch_row_bytes();
  plan->alignment = size_of(call.dtype);
  if (cut.rows != nullptr)
    describe_unequal_buffers(*plan, holds, rank, *cut.rows, cut.in_place);
  else
    describe_buffers(*plan, holds, rank, count, cut.in_place);
  // All ranks say the same here. Ranks with unequal rows meet too, to find out that they go apart.
  plan->meets_on_device = entry.canonical && (cut.rows != nullptr || plan->has_bytes());

  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::reduce) require_one_message_a_peer(schedule.sources_of(step));
    plan->steps.push_back(places.step(step));
  }
  for (const Source& source : schedule.sources) plan->sources.push_back(places.source(source));
  count_messages(*plan, message.copies_once && cut.leaves_copies);
  mark_fusible(plan->steps, plan->sources);
  mark_finishers(plan->steps, plan->sources);
  mark_copiers(plan->steps, plan->traffic, call, host, layout.ranks() == 2 && !cut.packed);
  if (outgrows(buffer_bytes(*plan, holds, rank, layout, cut), host.cache_bytes))
    mark_past_cache(plan->steps, plan->sources);
  if (layout.ranks() == 2)
    mark_fetches(plan->steps, call.collective, std::max(plan->input_bytes, plan->output_bytes), host);
  make_reductions(*plan, static_cast<std::uint32_t>(combined_leaves(layout, call.collective, rank)), custom);
  return plan;
}

// Elements of the call's count that a part has: of a multiple of what lines and 16-byte accesses want. Parts of rows do
// not lie side by side.
std::size_t count_of_part(const Call& call, const AlgorithmEntry& entry, int ranks, const Cut& cut) {
  const std::size_t bytes = total_count(call, ranks) * size_of(call.dtype);
  if (cut.part_bytes == 0 || cut.rows != nullptr || entry.joins_rows || bytes <= cut.part_bytes) return call.count;
  const std::size_t parts = (bytes + cut.part_bytes - 1) / cut.part_bytes;
  constexpr std::size_t kGrain = kLineBytes;
  return std::min<std::size_t>(call.count, ((call.count + parts - 1) / parts + kGrain - 1) / kGrain * kGrain);
}

}  // namespace

std::unique_ptr<Plan> make_plan(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks, const Host& host, const Cut& cut, const CustomOperator* custom) {
  if (cut.rows != nullptr) require_unequal_rows(entry);
  const std::size_t count = count_of_part(call, entry, layout.ranks(), cut);
  const auto part = [&](std::size_t elements) {
    return make_part(call, entry, rank, layout, chunks, host, elements, cut, custom);
  };
  auto plan = part(count);
  if (entry.copied_once != Copied::nothing && cut.copies_once && plan->scratch_bytes > 0) {
    Cut uncopied = cut;
    uncopied.copies_once = uncopied.copies_inputs = uncopied.leaves_copies = uncopied.copies_shared = false;
    plan->copies_shared = cut.copies_shared;
    plan->copied = entry.copied_once;
    plan->uncopied = make_plan(call, entry, rank, layout, chunks, host, uncopied, custom);
  }
  if (count == call.count) return plan;
  plan->parts = (call.count + count - 1) / count;
  const std::size_t rest = call.count - (plan->parts - 1) * count;
  if (rest != count) plan->last = part(rest);
  return plan;
}

}  // namespace tutti::internal
