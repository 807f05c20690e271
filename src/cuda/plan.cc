#include "cuda/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tutti/error.h"
#include "types/kinds.h"

namespace tutti::internal::cuda {
namespace {

constexpr std::uint8_t kSizes[] = {8, 7, 6, 5, 4, 3, 2};

static_assert(kMaxSources == ManyTask::kSources && kMaxTargets == ManyTask::kTargets);

std::size_t element_bytes(DType dtype, bool partial) { return partial ? accumulation_size_of(dtype) : size_of(dtype); }

std::uintptr_t address(const void* data) { return reinterpret_cast<std::uintptr_t>(data); }

void check_limit(const char* what, std::size_t have, std::size_t limit) {
  if (have <= limit) return;
  throw Error(
      ErrorCode::unsupported,
      fmt::format("reduce: {} {}, and one reduction on a GPU takes at most {}; use several", have, what, limit));
}

void check_aligned(const char* what, std::size_t i, const void* data, std::size_t bytes) {
  if (address(data) % bytes == 0) return;
  throw Error(
      ErrorCode::invalid_argument,
      fmt::format("reduce: {} {} lies at {}, which is no multiple of its elements' {} bytes", what, i, data, bytes));
}

void check_call(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets) {
  check_combines("reduce", spec.dtype, spec.op);
  if (spec.finish && spec.op == Op::avg && spec.leaves == 0)
    throw Error(ErrorCode::invalid_argument, "reduce: an average over 0 leaves; set leaves");
  check_limit("sources", sources.size(), kMaxSources);
  check_limit("targets", targets.size(), kMaxTargets);
  for (std::size_t i = 0; i < sources.size(); ++i)
    check_aligned("source", i, sources[i].data, element_bytes(spec.dtype, sources[i].partial));
  for (std::size_t i = 0; i < targets.size(); ++i)
    check_aligned("target", i, targets[i].data, element_bytes(spec.dtype, targets[i].partial));
}

// One source that is not finished: to targets of its own form bits are copied, to others they are converted.
Calls copies(const ReduceSpec& spec, std::span<const ReduceSource> source, std::span<const ReduceTarget> targets,
             std::size_t count) {
  Calls calls;
  const bool half = is_narrow_float(spec.dtype), partial = half && source[0].partial;
  const auto has_form = [&](const ReduceTarget& target) { return !half || target.partial == partial; };
  if (std::ranges::any_of(targets, has_form)) {
    Call& same = calls.call[calls.size++];
    same = {DType::uint8, Op::sum, false, 1, count * element_bytes(spec.dtype, partial), source, targets};
    if (half) same.only_partial = partial;
  }
  if (!std::ranges::all_of(targets, has_form))
    calls.call[calls.size++] = {spec.dtype, Op::sum, true, 1, count, source, targets, !partial};
  return calls;
}

// Cells of `cell_elems` elements that begin at a multiple of their size in memory whose elements have `bytes`.
struct Alignment {
  std::uintptr_t data;
  std::size_t bytes;
  std::size_t cell_elems;

  std::size_t past(std::size_t element) const { return (data + element * bytes) % (cell_elems * bytes); }
  std::size_t first() const { return (cell_elems * bytes - past(0)) % (cell_elems * bytes) / bytes; }
};

}  // namespace

Calls calls_of(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
               std::size_t count) {
  check_call(spec, sources, targets);
  Calls calls;
  if (count == 0 || targets.empty()) {
    const Groups is_a_tree(sources, false, kSizes);
    return calls;
  }
  if (sources.size() == 1 && !spec.finish) return copies(spec, sources, targets, count);

  Call& call = calls.call[calls.size++];
  call = {spec.dtype, spec.op, false, spec.leaves, count, sources, targets};
  if (call.dtype == DType::boolean) {
    call.op = boolean_op(call.op);
  } else if (combines_bits(call.op)) {
    call.count *= size_of(call.dtype);
    call.dtype = DType::uint8;
  }
  if (call.op == Op::avg && !spec.finish) call.op = Op::sum;
  if (is_narrow_float(call.dtype)) {
    const auto is_partial = [](const auto& each) { return each.partial; };
    if (std::ranges::all_of(sources, is_partial) && std::ranges::all_of(targets, is_partial)) {
      call.dtype = DType::float32;
    } else {
      call.mixed = std::ranges::any_of(sources, is_partial) || std::ranges::any_of(targets, is_partial);
    }
  }
  return calls;
}

Plan::Plan(const Call& call) : call_(call), groups_(call.sources, false, kSizes) {
  const bool few = groups_.get().size() == 1 && call.targets.size() <= FewTask::kTargets;
  shape_ = !few ? Shape::tree : call.sources.size() <= 2 ? Shape::pair : Shape::group;
  std::size_t waiting = 0, most = 0;
  for (const SourceGroup& group : groups_.get().first(groups_.get().size() - 1)) {
    waiting = waiting - group.joins + 1;
    most = std::max(most, waiting);
  }
  // 16-bit and 8-bit floats wait as float32: eight of them take two cells.
  waiting_cells_ = is_narrow_float(call.dtype) && !call.mixed ? 2 * most : most;
}

template <class Task>
void Plan::lay_cells(Task& task) const {
  const std::size_t cell_elems = call_.mixed ? 4 : is_float8(call_.dtype) ? 8 : 16 / size_of(call_.dtype);
  const auto alignment = [&](const void* data, bool partial) {
    return Alignment{address(data), element_bytes(call_.dtype, call_.mixed && partial), cell_elems};
  };
  const auto source = [&](int s) { return alignment(task.source[s], is_set(task.partial_sources, s)); };
  const auto target = [&](int t) { return alignment(task.target[t], is_set(task.partial_targets, t)); };
  task.head = std::min(target(0).first(), call_.count);
  task.cells = (call_.count - task.head) / cell_elems;
  bool shifted = false;
  for (int s = 0; s < task.sources; ++s) shifted |= source(s).past(task.head) != 0;
  task.congruent = !shifted;
  for (int t = 0; t < task.targets; ++t) task.congruent &= target(t).past(task.head) == 0;
  if (shifted) {
    // A cell is read in two aligned blocks, which reach into its neighbours; so those at the ends have to go.
    task.head += task.cells < 3 ? 0 : cell_elems;
    task.cells = task.cells < 3 ? 0 : task.cells - 2;
  }
  task.items = task.cells + (call_.count - task.cells * cell_elems);
}

template <class Task>
Task Plan::task() const {
  Task task{};
  task.leaves = call_.leaves;
  for (const ReduceSource& each : call_.sources) {
    if (each.partial) set(task.partial_sources, task.sources);
    task.source[task.sources++] = each.data;
  }
  for (const ReduceTarget& each : call_.targets) {
    if (call_.only_partial.value_or(each.partial) != each.partial) continue;
    if (each.partial) set(task.partial_targets, task.targets);
    task.target[task.targets++] = each.data;
  }
  if constexpr (!Task::kOneGroup) {
    for (const SourceGroup& each : groups_.get()) task.group[task.groups++] = {each.size, each.joins};
  }
  lay_cells(task);
  return task;
}

template FewTask Plan::task<FewTask>() const;
template ManyTask Plan::task<ManyTask>() const;

}  // namespace tutti::internal::cuda
