#include "reduce/reduce.h"

#include "memory/copy.h"
#include "reduce/kernel.h"
#include "reduce/reduction.h"
#include "tutti/error.h"

namespace tutti::internal {
namespace {

bool is_half(DType dtype) { return dtype == DType::float16 || dtype == DType::bfloat16; }

bool is_plain_float(DType dtype) { return dtype == DType::float32 || dtype == DType::float64; }

Kernel kernel_for(DType dtype, Op op) {
  if (is_plain_float(dtype)) return float_kernel(dtype, op);
  return is_half(dtype) ? half_kernel(dtype, op) : integer_kernel(dtype, op);
}

// To several targets bits are copied by the kernel of bytes: the source is read once.
void copy(const Task& task, std::size_t element_bytes) {
  const std::size_t bytes = task.count * element_bytes;
  if (bytes < 256 || task.targets.size() == 1) {
    for (const ReduceTarget& target : task.targets) {
      if (target.data != task.sources[0].data) copy_bytes(target.data, task.sources[0].data, bytes, task.stream);
    }
    return;
  }
  Task as_bytes = task;
  as_bytes.count = bytes;
  integer_kernel(DType::uint8, Op::sum)(as_bytes);
}

// One source that is not finished: its bits, where the target is of its own type.
void move(DType dtype, Kernel kernel, const Task& task) {
  if (!is_half(dtype)) return copy(task, size_of(dtype));
  for (const ReduceTarget& target : task.targets) {
    Task one = task;
    one.targets = {&target, 1};
    if (target.partial == task.sources[0].partial) {
      copy(one, target.partial ? accumulation_size_of(dtype) : size_of(dtype));
    } else {
      kernel(one);
    }
  }
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
void average_integers(DType dtype, Kernel kernel, const Task& task) {
  if (task.targets.empty() || task.count == 0) return;
  const ReduceTarget& first = task.targets[0];
  Task sum = task;
  sum.targets = {&first, 1};
  sum.leaves = 0;
  sum.stream = false;
  kernel(sum);
  divide(dtype, first.data, task.count, task.leaves);
  for (const ReduceTarget& other : task.targets.subspan(1)) {
    copy_bytes(other.data, first.data, task.count * size_of(dtype));
  }
}

}  // namespace

Reduction::Reduction(const ReduceSpec& spec, std::span<const ReduceSource> shape)
    : groups_(shape, is_half(spec.dtype)), kernel_(kernel_for(spec.dtype, spec.op)), dtype_(spec.dtype) {
  const bool divide = spec.finish && spec.op == Op::avg;
  if (divide && spec.leaves == 0)
    throw Error(ErrorCode::invalid_argument, "reduce: an average over 0 leaves; set leaves");
  leaves_ = divide ? spec.leaves : 0;
  const bool is_float = is_half(dtype_) || is_plain_float(dtype_);
  if (shape.size() == 1 && !spec.finish) {
    around_ = move;
  } else if (divide && !is_float) {
    around_ = average_integers;
  }
}

void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
            std::size_t count) {
  Reduction(spec, sources).run(sources, targets, count, spec.stream);
}

}  // namespace tutti::internal
