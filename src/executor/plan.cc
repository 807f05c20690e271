#include "executor/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "tutti/error.h"

namespace tutti::runtime {
namespace {

constexpr std::size_t kLineBytes = 64;

// Inputs and outputs of all ranks of a host together that the cache does not keep from one call to the next are stored
// past it. By 32 MiB of cache, 2 ranks, symmetric memory: all_reduce of 2 MiB 50 us through it, 159 past it; broadcast
// of 8 MiB 330 and 230.
bool outgrows(std::size_t bytes, std::size_t cache_bytes) { return bytes > cache_bytes / 4 * 3; }

// Byte offsets of regions, by space.
class Places {
 public:
  // stride: elements from one exact slice to the next, as the buffers have them.
  Places(const Schedule& schedule, const Partition& partition, DType dtype, std::size_t stride)
      : partition_(partition),
        element_(size_of(dtype)),
        accumulation_(accumulation_size_of(dtype)),
        gap_(schedule.exact_slices ? stride - partition.count / partition.slices : 0) {
    std::size_t longest = 0;
    for (int s = 0; s < schedule.slices; ++s)
      for (int c = 0; c < schedule.chunks; ++c) longest = std::max(longest, partition.chunk(s, c).size());
    scratch_cell_ = (longest * accumulation_ + kLineBytes - 1) / kLineBytes * kLineBytes;
    chunks_ = static_cast<std::size_t>(schedule.chunks);
  }

  std::size_t element_bytes(Space space) const { return space == Space::scratch ? accumulation_ : element_; }
  std::size_t scratch_row_bytes() const { return chunks_ * scratch_cell_; }

  ElementRange range(const Region& region) const { return partition_.chunk(region.slice, region.chunk); }

  std::size_t offset(const Region& region) const {
    if (region.space == Space::scratch) return (region.row * chunks_ + region.chunk) * scratch_cell_;
    return (region.row * partition_.count + range(region).begin + region.slice * gap_) * element_;
  }

 private:
  const Partition& partition_;
  std::size_t element_, accumulation_, chunks_;
  std::size_t gap_;           // elements between one slice and the next
  std::size_t scratch_cell_;  // a fixed stride: the same row holds chunks of slices of different lengths in turn
};

bool is_same_memory(const PlanStep& send, Space space, std::size_t offset) {
  return send.space == space && send.offset == offset;
}

// A reduce whose result is sent by the steps right behind it may write to those peers at once. So may a copy whose
// source they send.
void mark_fusible(Plan& plan) {
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& reduce = plan.steps[i];
    if (reduce.kind != StepKind::reduce) continue;
    const PlanSource& source = plan.sources[reduce.first_source];
    const bool copies =
        reduce.source_count == 1 && !reduce.finish && source.peer == kLocal && source.partial == reduce.partial;
    for (std::size_t j = i + 1; j < plan.steps.size(); ++j) {
      PlanStep& send = plan.steps[j];
      const bool same = send.kind == StepKind::send && send.bytes == reduce.bytes &&
                        (is_same_memory(send, reduce.space, reduce.offset) ||
                         (copies && is_same_memory(send, source.space, source.offset)));
      const bool first = std::none_of(plan.steps.begin() + i + 1, plan.steps.begin() + j,
                                      [&](const PlanStep& step) { return step.peer == send.peer; });
      if (!same || !first) break;
      send.fused = true;
      reduce.sends_source = !is_same_memory(send, reduce.space, reduce.offset);
      ++reduce.pushes;
    }
    plan.most_sources = std::max<std::size_t>(plan.most_sources, reduce.source_count);
    plan.most_pushes = std::max<std::size_t>(plan.most_pushes, reduce.pushes);
  }
}

bool is_wait(const PlanStep& step) { return step.kind == StepKind::wait_send || step.kind == StepKind::wait_receive; }

// Whether step `at` does nothing but finish what `reduce` has left in scratch, for the last time.
bool finishes(const Plan& plan, const PlanStep& reduce, std::size_t at) {
  const PlanStep& step = plan.steps[at];
  if (step.kind != StepKind::reduce || !step.finish || step.source_count != 1 || step.count != reduce.count)
    return false;
  const PlanSource& source = plan.sources[step.first_source];
  if (source.peer != kLocal || source.space != Space::scratch || source.offset != reduce.offset) return false;
  return std::all_of(plan.steps.begin() + at + 1, plan.steps.end(), is_wait);
}

// Prepares the reductions, and finds those whose result is finished a few waits later.
void make_reductions(Plan& plan, std::uint32_t leaves) {
  std::vector<ReduceSource> shape;
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& step = plan.steps[i];
    if (step.kind != StepKind::reduce) continue;
    shape.clear();
    for (std::uint32_t s = 0; s < step.source_count; ++s) {
      const PlanSource& source = plan.sources[step.first_source + s];
      shape.push_back({.joins = source.joins, .partial = source.partial});
    }
    ReduceSpec spec{.dtype = plan.call.dtype, .op = plan.call.op, .finish = step.finish, .leaves = leaves};
    step.reduction = static_cast<std::uint32_t>(plan.reductions.size());
    plan.reductions.emplace_back(spec, shape);
    std::size_t next = i + 1;
    while (next < plan.steps.size() && is_wait(plan.steps[next])) ++next;
    if (step.space != Space::scratch || step.finish || next == plan.steps.size() || !finishes(plan, step, next))
      continue;
    step.finisher = static_cast<std::uint32_t>(next);
    spec.finish = true;
    plan.reductions.emplace_back(spec, shape);
  }
}

// Marks what is written and not read again: it need not push other things out of the cache.
void mark_past_cache(Plan& plan) {
  std::map<std::pair<Space, std::size_t>, std::size_t> last_reader;  // by what is read: a step
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const PlanStep& step = plan.steps[i];
    if (step.kind == StepKind::send) last_reader[{step.space, step.offset}] = i;
    for (const PlanSource& source : std::span(plan.sources).subspan(step.first_source, step.source_count))
      if (source.peer == kLocal) last_reader[{source.space, source.offset}] = i;
  }
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    PlanStep& writer = plan.steps[i];
    if (writer.kind != StepKind::reduce && writer.kind != StepKind::receive) continue;
    const auto reader = last_reader.find({writer.space, writer.offset});
    writer.past_cache = reader == last_reader.end() || reader->second <= i + writer.pushes;
  }
}

struct Traffic {
  std::uint32_t sends = 0, receives = 0, arrivals = 0;
};

// Counts the traffic with each peer.
void count_messages(Plan& plan) {
  std::map<int, Traffic> by_peer;
  for (const PlanStep& step : plan.steps) {
    if (step.kind == StepKind::send) ++by_peer[step.peer].sends;
    if (step.kind == StepKind::receive) {
      ++by_peer[step.peer].receives;
      ++by_peer[step.peer].arrivals;
    }
    for (std::uint32_t i = 0; i < step.source_count; ++i)
      if (const int peer = plan.sources[step.first_source + i].peer; peer != kLocal) ++by_peer[peer].arrivals;
  }
  for (const auto& [peer, traffic] : by_peer) {
    plan.peers.push_back(peer);
    plan.sends.push_back(traffic.sends);
    plan.receives.push_back(traffic.receives);
    plan.arrivals.push_back(traffic.arrivals);
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
  const bool parts = call.collective == Collective::all_gather || call.collective == Collective::reduce_scatter;
  return parts ? call.count * static_cast<std::size_t>(ranks) : call.count;
}

namespace {

// What is known of the caller's buffers, and of those that a part of `count` elements works in, where rows begin
// `stride` elements apart.
void describe_buffers(Plan& plan, int rank, int ranks, std::size_t count, std::size_t stride) {
  const Call& call = plan.call;
  const std::size_t element = size_of(call.dtype), own = static_cast<std::size_t>(rank);
  plan.alignment = element;
  plan.input_bytes = plan.output_bytes = total_count(call, ranks) * element;
  plan.row_bytes = count * element;
  plan.whole_row_bytes = call.count * element;
  if (call.collective == Collective::all_gather) {
    plan.input_bias = own * stride * element;
    plan.input_bytes = call.count * element;
    plan.in_place = -static_cast<std::ptrdiff_t>(own * call.count * element);
    plan.output_rows = static_cast<std::size_t>(ranks);
  }
  if (call.collective == Collective::reduce_scatter) {
    plan.output_bias = own * stride * element;
    plan.output_bytes = call.count * element;
    plan.in_place = static_cast<std::ptrdiff_t>(own * call.count * element);
    plan.input_rows = static_cast<std::size_t>(ranks);
  }
}

// The plan of a part of `count` elements.
std::unique_ptr<Plan> make_part(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks, std::size_t cache_bytes, std::size_t count, std::size_t stride) {
  Call of_part = call;
  of_part.count = count;
  const std::size_t total = total_count(of_part, layout.ranks());
  const Message message{.root = call.root, .chunks = entry.pipelined ? chunks : 1};
  const Schedule schedule = entry.schedule(rank, layout, message);
  const Partition partition = partition_for(schedule, call.dtype, total);
  const Places places(schedule, partition, call.dtype, stride);

  auto plan = std::make_unique<Plan>();
  plan->call = call;
  plan->tag = call.pack();
  plan->canonical = entry.canonical;
  plan->scratch_bytes = schedule.scratch_rows * places.scratch_row_bytes();
  describe_buffers(*plan, rank, layout.ranks(), count, stride);

  for (const Step& step : schedule.steps) {
    require_one_message_a_peer(schedule.sources_of(step));
    PlanStep made{.kind = step.kind,
                  .finish = step.finish,
                  .space = step.region.space,
                  .peer = step.peer,
                  .message = step.message,
                  .first_source = step.first_source,
                  .source_count = step.source_count};
    if (step.kind != StepKind::wait_send && step.kind != StepKind::wait_receive) {
      made.partial = step.region.space == Space::scratch;
      made.offset = places.offset(step.region);
      made.count = places.range(step.region).size();
      made.element_bytes = static_cast<std::uint8_t>(places.element_bytes(step.region.space));
      made.bytes = made.count * made.element_bytes;
    }
    plan->steps.push_back(made);
  }
  for (const Source& source : schedule.sources)
    plan->sources.push_back({.peer = source.peer,
                             .space = source.region.space,
                             .joins = source.joins,
                             .partial = source.partial,
                             .element_bytes = static_cast<std::uint8_t>(
                                 source.partial ? accumulation_size_of(call.dtype) : size_of(call.dtype)),
                             .offset = source.peer == kLocal ? places.offset(source.region) : 0});
  count_messages(*plan);
  mark_fusible(*plan);
  const auto neighbours = static_cast<std::size_t>(std::ranges::count(layout.host, layout.host[rank]));
  const std::size_t passes =
      stride == count ? total : total_count(call, layout.ranks());  // through the cache, in a call
  if (outgrows(passes * size_of(call.dtype) * 2 * neighbours, cache_bytes)) mark_past_cache(*plan);
  make_reductions(*plan, static_cast<std::uint32_t>(layout.leaves()));
  return plan;
}

// Elements of the call's count that a part has: of a multiple of what lines and 16-byte accesses want.
std::size_t count_of_part(const Call& call, int ranks, const Cut& cut) {
  const std::size_t bytes = total_count(call, ranks) * size_of(call.dtype);
  if (cut.part_bytes == 0 || bytes <= cut.part_bytes) return call.count;
  const std::size_t parts = (bytes + cut.part_bytes - 1) / cut.part_bytes;
  constexpr std::size_t kGrain = kLineBytes;
  return std::min<std::size_t>(call.count, ((call.count + parts - 1) / parts + kGrain - 1) / kGrain * kGrain);
}

}  // namespace

std::unique_ptr<Plan> make_plan(const Call& call, const AlgorithmEntry& entry, int rank, const Layout& layout,
                                int chunks, std::size_t cache_bytes, const Cut& cut) {
  const std::size_t count = count_of_part(call, layout.ranks(), cut);
  const auto part = [&](std::size_t elements) {
    return make_part(call, entry, rank, layout, chunks, cache_bytes, elements, cut.packed ? elements : call.count);
  };
  auto plan = part(count);
  if (count == call.count) return plan;
  plan->parts = (call.count + count - 1) / count;
  const std::size_t rest = call.count - (plan->parts - 1) * count;
  if (rest != count) plan->last = part(rest);
  return plan;
}

}  // namespace tutti::runtime
