#include "runtime/plan_cache.h"

#include <algorithm>
#include <string>
#include <utility>

#include "selection/choose.h"
#include "transport/transport.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

static_assert(2 * kMaxChunks <= kMaxPostedReceives);  // of a part: each chunk goes there and back

// Long enough that the fixed cost of a part (a round between the ranks, three launches) is little beside its bytes.
// Short enough that the first and the last part, which nothing overlaps, are little of a call. An all_reduce of 2 ranks
// took 1.9 to 2.7 times as long with parts of 16 MiB and more (bench/results/2026-11-27-gpu-parts.md): these outgrow
// the host's cache, or what the plan takes for it (mark_past_cache()). Longer calls than 1 GiB have such parts.
constexpr std::size_t kPartBytes = 8 << 20;
// All copies of a call should fit CUDA's queues of 1024 operations: a part takes five on one stream, and four on the
// other. What does not fit is waited for while it is enqueued.
constexpr std::size_t kMaxParts = 128;
}  // namespace

PlanCache::PlanCache(int rank, Layout layout, const ChoiceTable& table, const Host& host, bool cuts, const Log& log)
    : rank_(rank),
      layout_(std::move(layout)),
      chooser_(table, layout_.ranks(), layout_.hosts(), host.crowded && !cuts),
      host_(host),
      cuts_(cuts),
      log_(log) {}

Algorithm PlanCache::choose(Collective collective, std::size_t count, DType dtype, Order order) const {
  check({.collective = collective, .dtype = dtype, .order = order, .count = count}, layout_.ranks());
  return chooser_.choose(collective, bytes_of({.collective = collective, .dtype = dtype, .count = count}), order);
}

// All ranks know it. Of a call whose rows nobody knows all: as if it were long, so that no algorithm is chosen for
// being quick with short ones.
std::size_t PlanCache::bytes_of(const Call& call) const {
  if (call.flags != kUnequalRows) return total_count(call, layout_.ranks()) * size_of(call.dtype);
  return traits_of(call.collective).shows_all_rows() ? call.count * size_of(call.dtype) : kAnyBytes;
}

// The call with its algorithm chosen and its number to come.
Call PlanCache::resolve(const CallSpec& spec) const {
  check(spec, layout_.ranks());
  const std::string what(to_string(spec.collective));
  Call call{.collective = spec.collective,
            .dtype = spec.dtype,
            .op = spec.op,
            .order = spec.order,
            .algorithm = spec.algorithm,
            .flags = spec.flags,
            .count = spec.count,
            .root = static_cast<std::uint16_t>(spec.root)};
  if (call.algorithm == Algorithm::automatic)
    call.algorithm = chooser_.choose(spec.collective, bytes_of(call), spec.order, spec.flags == kUnequalRows);
  const AlgorithmEntry* entry = find_algorithm(spec.collective, call.algorithm);
  if (entry == nullptr)
    throw Error(ErrorCode::invalid_argument,
                what + ": there is no algorithm " + std::string(to_string(call.algorithm)) + " for it");
  if (!entry->canonical && spec.order == Order::canonical && layout_.ranks() > 2)
    throw Error(ErrorCode::invalid_argument,
                what + ": " + std::string(to_string(call.algorithm)) +
                    " cannot keep the canonical order on more than 2 ranks; ask for Order::any to allow it");
  return call;
}

const CustomOperator* PlanCache::custom_of(const Call& call) const {
  if (call.op != Op::custom) return nullptr;
  const std::size_t number = call.flags - kFirstCustom;
  if (number >= custom_.size())
    throw Error(ErrorCode::invalid_argument, std::string(to_string(call.collective)) +
                                                 ": a custom operator is made by Communicator::make_operator()");
  return &custom_[number];
}

const Plan& PlanCache::plan_for(const CallSpec& spec, Buffers buffers) {
  const Call call = resolve(spec);
  auto& plan =
      plans_[static_cast<std::size_t>(buffers)][{call.pack().word, spec.rows == nullptr ? CallRows{} : *spec.rows}];
  if (plan == nullptr) plan = make(spec, call, buffers);
  if (spec.rows != nullptr) return *plan;
  last_spec_ = spec;
  last_buffers_ = buffers;
  last_ = plan.get();
  return *plan;
}

std::unique_ptr<Plan> PlanCache::make(const CallSpec& spec, const Call& call, Buffers buffers) const {
  const AlgorithmEntry& entry = *find_algorithm(call.collective, call.algorithm);
  const std::size_t bytes = bytes_of(call);
  // Parts are partitioned otherwise than the whole call: only the canonical order stays the same then.
  const bool cuts = cuts_ && entry.canonical && spec.rows == nullptr;
  const auto here = std::ranges::count(layout_.host, layout_.host[static_cast<std::size_t>(rank_)]);
  const std::size_t part_bytes = cuts ? std::max(kPartBytes, (bytes + kMaxParts - 1) / kMaxParts) : 0;
  const std::size_t bytes_at_once = cuts ? std::min(bytes, part_bytes) : bytes;
  const bool unequal = spec.rows != nullptr;
  const bool copies = buffers != Buffers::packed && !unequal &&
                      copies_once(call.collective, bytes, layout_.ranks(), here, host_.crowded);
  const int chunks = chooser_.chunks(call.collective, call.algorithm, bytes_at_once, call.order, unequal);
  const Cut cut{
      .part_bytes = part_bytes,
      .packed = buffers == Buffers::packed,
      .rows = spec.rows,
      .in_place = buffers == Buffers::in_place,
      .copies_once = copies,
      .copies_inputs = copies && copies_inputs(bytes, host_.crowded),
      .leaves_copies = copies && leaves_copies(call.collective, bytes, host_.crowded),
      .copies_shared = copies && copies_shared(call.collective, bytes, host_.crowded),
      .ahead = pieces_ahead(call.collective, {bytes_at_once, layout_.ranks(), layout_.hosts(), unequal}, chunks)};
  auto plan = make_plan(call, entry, rank_, layout_, chunks, host_, cut, custom_of(call));
  log_.trace([&] {
    return "a new kind of call: " + describe_kind(call) + ", by " + std::string(to_string(call.algorithm)) +
           (spec.algorithm == Algorithm::automatic ? ", as the table says" : ", as the call says") +
           "; parts: " + std::to_string(plan->parts) + ", steps of each: " + std::to_string(plan->steps.size());
  });
  return plan;
}

void PlanCache::clear() {
  for (auto& plans : plans_) plans.clear();
  last_ = nullptr;
}

}  // namespace tutti::internal
