// From a call of reduce() to what is launched: which kernel, and which work for its threads. Knows no device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cuda/task.h"
#include "reduce/operands.h"
#include "reduce/tree.h"

namespace tutti::internal::cuda {

// What one call of reduce() can take.
inline constexpr std::size_t kMaxSources = 1024, kMaxTargets = 64;

// At most two sources; at most kBatch that form one group; anything else.
enum class Shape : std::uint8_t { pair, group, tree };

// What a kernel is compiled for. `mixed`: some sources or targets, not all, are partial results of a 16-bit float.
struct KernelName {
  DType dtype;
  Op op;
  bool mixed;
  Shape shape;
};

// A reduction as the kernels know it: there is no copying, and no unfinished average.
struct Call {
  DType dtype = DType::uint8;
  Op op = Op::sum;
  bool mixed = false;
  std::uint32_t leaves = 1;
  std::size_t count = 0;
  std::span<const ReduceSource> sources;
  std::span<const ReduceTarget> targets;
  std::optional<bool> only_partial = std::nullopt;  // of the targets those that are, or are not, partial
};

// Usually one; two where a source that is only copied has targets of both forms; none where there is nothing to do.
struct Calls {
  std::array<Call, 2> call;
  std::size_t size = 0;
  const Call* begin() const { return call.data(); }
  const Call* end() const { return call.data() + size; }
};

// Throws Error{invalid_argument, unsupported} as reduce() says.
Calls calls_of(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
               std::size_t count);

// A call's tree, cut into groups of up to kBatch.
class Plan {
 public:
  explicit Plan(const Call& call);

  KernelName kernel() const { return {call_.dtype, call_.op, call_.mixed, shape_}; }
  // Cells that a thread keeps waiting in shared memory.
  std::size_t waiting_cells() const { return waiting_cells_; }
  // FewTask for Shape::pair and group, ManyTask for Shape::tree.
  template <class Task>
  Task task() const;

 private:
  template <class Task>
  void lay_cells(Task& task) const;

  Call call_;
  Groups groups_;
  Shape shape_;
  std::size_t waiting_cells_;
};

}  // namespace tutti::internal::cuda
