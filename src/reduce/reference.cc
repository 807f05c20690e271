#include "reduce/reference.h"

#include "reduce/scalar.h"
#include "tutti/error.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

// One source, not finished: bits stay as they are where the target has the source's own form.
template <class T>
void move_elements(const Task& task) {
  const bool from_partial = NarrowFloat<T> && task.sources[0].partial;
  for (const ReduceTarget& target : task.targets) {
    const bool to_partial = NarrowFloat<T> && target.partial;
    const std::size_t bytes = to_partial ? sizeof(AccumulationOf<T>) : sizeof(T);
    for (std::size_t i = 0; i < task.count; ++i) {
      if (from_partial == to_partial) {
        std::memmove(target.data + i * bytes, task.sources[0].data + i * bytes, bytes);
      } else {
        store_element<T>(load_element<T>(task.sources[0], i), target, i);
      }
    }
  }
}

template <class T>
void run(const ReduceSpec& spec, const Task& task) {
  if (task.sources.size() == 1 && !spec.finish) return move_elements<T>(task);
  switch (spec.op) {
    case Op::sum:
    case Op::avg: return reduce_elements<T, Op::sum>(task, 0, task.count);
    case Op::prod: return reduce_elements<T, Op::prod>(task, 0, task.count);
    case Op::min: return reduce_elements<T, Op::min>(task, 0, task.count);
    case Op::max: return reduce_elements<T, Op::max>(task, 0, task.count);
    default: break;
  }
  if constexpr (std::integral<AccumulationOf<T>>) {
    switch (spec.op) {
      case Op::band: return reduce_elements<T, Op::band>(task, 0, task.count);
      case Op::bor: return reduce_elements<T, Op::bor>(task, 0, task.count);
      default: return reduce_elements<T, Op::bxor>(task, 0, task.count);
    }
  }
}

void run_booleans(ReduceSpec spec, const Task& task) {
  spec.op = boolean_op(spec.op);
  run<boolean>(spec, task);
}

}  // namespace

void reduce_reference(const ReduceSpec& spec, std::span<const ReduceSource> sources,
                      std::span<const ReduceTarget> targets, std::size_t count) {
  check_combines("reduce", spec.dtype, spec.op);
  const bool divide = spec.finish && spec.op == Op::avg;
  if (divide && spec.leaves == 0)
    throw Error(ErrorCode::invalid_argument, "reduce: an average over 0 leaves; set leaves");
  const Groups checked(sources, true);
  const Task task{sources, targets, {}, count, divide ? spec.leaves : 0, false};
  switch (spec.dtype) {
    case DType::float32: return run<float>(spec, task);
    case DType::float64: return run<double>(spec, task);
    case DType::float16: return run<float16>(spec, task);
    case DType::bfloat16: return run<bfloat16>(spec, task);
    case DType::float8_e4m3: return run<float8_e4m3>(spec, task);
    case DType::float8_e5m2: return run<float8_e5m2>(spec, task);
    case DType::int8: return run<std::int8_t>(spec, task);
    case DType::uint8: return run<std::uint8_t>(spec, task);
    case DType::int32: return run<std::int32_t>(spec, task);
    case DType::uint32: return run<std::uint32_t>(spec, task);
    case DType::int64: return run<std::int64_t>(spec, task);
    case DType::uint64: return run<std::uint64_t>(spec, task);
    case DType::boolean: return run_booleans(spec, task);
  }
}

}  // namespace tutti::internal
