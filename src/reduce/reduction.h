// reduce() for a shape that is known beforehand: the tree is checked and cut, and the kernel chosen, once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "reduce/float_environment.h"
#include "reduce/kernel.h"
#include "reduce/operands.h"
#include "reduce/scalar.h"
#include "reduce/tree.h"

namespace tutti::internal {

class Reduction {
 public:
  // `joins` and `partial` of the sources are the shape. Throws Error{invalid_argument} where the joins describe no
  // tree, or an average is over 0 leaves.
  Reduction(const ReduceSpec& spec, std::span<const ReduceSource> shape);

  // As reduce(), of sources of that shape.
  void run(std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets, std::size_t count,
           bool stream) const {
    const Task task{sources, targets, groups_.get(), count, leaves_, stream};
    around_ == nullptr ? prepared_.kernel(task) : around_(prepared_, task);
  }

  struct Prepared {
    Kernel kernel;
    DType dtype;
    const CustomOperator* custom;
  };

 private:
  Groups groups_;
  Prepared prepared_;
  void (*around_)(const Prepared&, const Task&) = nullptr;  // what takes more, or less, than the kernel
  std::uint32_t leaves_;                                    // to divide by; 0: nothing is divided
};

}  // namespace tutti::internal
