#include "reduce/reduce.h"

#include <algorithm>
#include <ranges>

#include "memory/copy.h"
#include "memory/string_copy.h"
#include "reduce/custom.h"
#include "reduce/kernel.h"
#include "reduce/reduction.h"
#include "tutti/error.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

Kernel kernel_for(DType dtype, Op op) {
  check_combines("reduce", dtype, op);
  if (dtype == DType::boolean) return boolean_kernel(boolean_op(op));
  if (combines_bits(op)) return byte_kernel(op);
  if (is_float8(dtype)) return float8_kernel(dtype, op);
  if (is_narrow_float(dtype)) return half_kernel(dtype, op);
  return is_floating(dtype) ? float_kernel(dtype, op) : integer_kernel(dtype, op);
}

// The first target, which is this rank's own, comes last: its lines are to stay in the cache. In pieces that the
// second-level cache still has when they are copied once more.
void copy_to_each_by_string(std::span<const ReduceTarget> targets, const std::byte* from, std::size_t bytes) {
  const std::size_t piece = targets.size() > 1 ? 32 << 10 : bytes;
  for (std::size_t at = 0; at < bytes; at += piece)
    for (const ReduceTarget& target : targets | std::views::reverse)
      if (target.data != from) copy_by_string(target.data + at, from + at, std::min(piece, bytes - at));
}

// To several targets bits are copied by the kernel of bytes, which reads the source once, unless another way is
// quicker.
void copy(const Task& task, std::size_t element_bytes) {
  const std::size_t bytes = task.count * element_bytes;
  const std::byte* const source = task.sources[0].data;
  if (copies_by_string(bytes)) return copy_to_each_by_string(task.targets, source, bytes);
  if (bytes < 256 || task.targets.size() == 1) {
    for (const ReduceTarget& target : task.targets)
      if (target.data != source) copy_bytes(target.data, source, bytes, task.stream);
    return;
  }
  Task as_bytes = task;
  as_bytes.count = bytes;
  integer_kernel(DType::uint8, Op::sum)(as_bytes);
}

// One source that is not finished: its bits, where the target is of its own type.
void move(const Reduction::Prepared& prepared, const Task& task) {
  const DType dtype = prepared.dtype;
  if (!is_narrow_float(dtype)) return copy(task, size_of(dtype));
  for (const ReduceTarget& target : task.targets) {
    Task one = task;
    one.targets = {&target, 1};
    if (target.partial == task.sources[0].partial) {
      copy(one, target.partial ? accumulation_size_of(dtype) : size_of(dtype));
    } else {
      prepared.kernel(one);
    }
  }
}

void as_bytes(const Reduction::Prepared& prepared, const Task& task) {
  Task bytes = task;
  bytes.count *= size_of(prepared.dtype);
  prepared.kernel(bytes);
}

void as_custom(const Reduction::Prepared& prepared, const Task& task) {
  reduce_by(*prepared.custom, prepared.dtype, task);
}

template <class T>
void divide(std::byte* data, std::size_t count, std::uint32_t leaves) {
  T* const values = reinterpret_cast<T*>(data);
  for (std::size_t i = 0; i < count; ++i) values[i] = average(values[i], leaves);
}

void divide(DType dtype, std::byte* data, std::size_t count, std::uint32_t leaves) {
  switch (dtype) {
    case DType::int8: return divide<std::int8_t>(data, count, leaves);
    case DType::uint8: return divide<std::uint8_t>(data, count, leaves);
    case DType::int32: return divide<std::int32_t>(data, count, leaves);
    case DType::uint32: return divide<std::uint32_t>(data, count, leaves);
    case DType::int64: return divide<std::int64_t>(data, count, leaves);
    default: return divide<std::uint64_t>(data, count, leaves);
  }
}

// There is no vector instruction that divides integers, so a mean is a second pass, over the first target.
void average_integers(const Reduction::Prepared& prepared, const Task& task) {
  if (task.targets.empty() || task.count == 0) return;
  const ReduceTarget& first = task.targets[0];
  Task sum = task;
  sum.targets = {&first, 1};
  sum.leaves = 0;
  sum.stream = false;
  prepared.kernel(sum);
  divide(prepared.dtype, first.data, task.count, task.leaves);
  for (const ReduceTarget& other : task.targets.subspan(1)) {
    copy_bytes(other.data, first.data, task.count * size_of(prepared.dtype));
  }
}

}  // namespace

Reduction::Reduction(const ReduceSpec& spec, std::span<const ReduceSource> shape)
    : groups_(shape, is_narrow_float(spec.dtype)), prepared_{kernel_for(spec.dtype, spec.op), spec.dtype, spec.custom} {
  if ((spec.op == Op::custom) != (spec.custom != nullptr))
    throw Error(ErrorCode::invalid_argument, "reduce: the operator custom, and no other, comes with a function");
  const bool divide = spec.finish && spec.op == Op::avg;
  if (divide && spec.leaves == 0)
    throw Error(ErrorCode::invalid_argument, "reduce: an average over 0 leaves; set leaves");
  leaves_ = divide ? spec.leaves : 0;
  if (shape.size() == 1 && !spec.finish) {
    around_ = move;
  } else if (spec.custom != nullptr) {
    around_ = as_custom;
  } else if (divide && !is_floating(spec.dtype)) {
    around_ = average_integers;
  } else if (combines_bits(spec.op) && size_of(spec.dtype) > 1) {
    around_ = as_bytes;
  }
}

void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count) {
  Reduction(spec, sources).run(sources, targets, count, spec.stream);
}

}  // namespace tutti::internal
