// Kinds of element types and of operators, and what goes together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tutti/error.h"
#include "tutti/types.h"

namespace tutti::internal {

// Narrower than float32, and accumulated in it: partial results have another form than elements.
constexpr bool is_float8(DType dtype) { return dtype == DType::float8_e4m3 || dtype == DType::float8_e5m2; }
constexpr bool is_narrow_float(DType dtype) {
  return dtype == DType::float16 || dtype == DType::bfloat16 || is_float8(dtype);
}

constexpr bool is_floating(DType dtype) {
  return dtype == DType::float32 || dtype == DType::float64 || is_narrow_float(dtype);
}

// The bits of an element do not meet each other: any number of elements is as good as its bytes.
constexpr bool combines_bits(Op op) { return op == Op::band || op == Op::bor || op == Op::bxor; }

// The operator that the reduction is left with.
constexpr Op combined_as(Op op) { return op == Op::premul_sum ? Op::sum : op; }

// Why not, of what can_combine() refuses.
inline std::string words_of_misfit(DType dtype, Op op) {
  const std::string operation(to_string(op)), type(to_string(dtype));
  return "the operator " + operation + " does not fit the element type " + type + ": " +
         (combines_bits(op) ? operation + " combines integers and booleans" : "a " + type + " has no mean");
}

// Throws Error{invalid_argument}, which begins with `what`, unless can_combine().
inline void check_combines(std::string_view what, DType dtype, Op op) {
  if (!can_combine(dtype, op))
    throw Error(ErrorCode::invalid_argument, std::string(what) + ": " + words_of_misfit(dtype, op));
}

// The operators that the type has, in the order of their declaration.
inline std::vector<Op> ops_of(DType dtype) {
  std::vector<Op> ops;
  for (const Op op : all_ops())
    if (can_combine(dtype, op)) ops.push_back(op);
  return ops;
}

}  // namespace tutti::internal
