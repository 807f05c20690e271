// A caller's own operator.
#pragma once

#include <string>

#include "reduce/scalar.h"
#include "tutti/operator.h"

namespace tutti::internal {

struct CustomOperator {
  std::string name;
  CombineFunction combine;
};

// Evaluates the task's tree by the operator, in pieces. Throws Error{aborted} if it throws.
void reduce_by(const CustomOperator& by, DType dtype, const Task& task);

}  // namespace tutti::internal
