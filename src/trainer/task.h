// What the operations of operations.h are made of: steps over arrays of doubles, which the CPU and a GPU run alike
// (run_task.h).
#pragma once

#include <cstddef>

namespace tutti::trainer {

// Sums over rows are made in groups of so many, those of the sums again in groups, and so on: a fixed order that any
// number of threads can share, and whose error grows as the logarithm of the number of rows.
inline constexpr std::size_t kRowsOfGroup = 32;

// Matrices are row-major; `inner` and `cols` say how many columns each has. i counts the elements of out[0, count).
enum class Step : int {
  fill,       // out[i] = scalar
  copy,       // out[i] = a[i]
  add,        // out[i] = a[i] + b[i]
  add_row,    // out[i] = a[i] + b[i % cols]
  sub,        // out[i] = a[i] - b[i]
  mul,        // out[i] = a[i] * b[i]
  scale,      // out[i] = scalar * a[i]
  square,     // out[i] = a[i]^2
  relu,       // out[i] = a[i] if it is above 0, else 0
  tanh,       // out[i] = tanh(a[i])
  matmul,     // out {-, cols} = a {-, inner} by b {inner, cols}; each sum in ascending order
  chebyshev,  // row r of out {-, inner} = T_0(t) ... T_inner-1(t), t = (a[r] - scalar) / scalar2; count counts rows
  monomial,   // the same of the powers of t

  // Row g of out = the sum over the rows r of group g of row r of a {rows, cols}, in ascending order.
  sum_rows,
  // The same of the outer product of row r of a {rows, inner} and row r of b {rows, cols}.
  sum_products,

  // Gradients: these add to out.
  increase,           // out[i] += scalar
  increase_by_first,  // out[i] += a[0]
  add_scaled,         // out[i] += scalar * a[i]
  add_product,        // out[i] += a[i] * b[i]
  square_gradient,    // out[i] += 2 a[i] * b[i]; a: what was squared, b: the gradient of the square
  relu_gradient,      // out[i] += b[i] if a[i] > 0; a: what went in
  tanh_gradient,      // out[i] += (1 - a[i]^2) * b[i]; a: what came out
  matmul_gradient,    // out {-, inner} += a {-, cols} by the transpose of b {inner, cols}
};

// A value, which a kernel takes as it is. Arrays are memory of the device that runs it; out is none of the others.
struct Task {
  Step step;
  std::size_t count;  // what may be done side by side: elements of out, or rows where the step says so
  double* out;
  const double* a = nullptr;
  const double* b = nullptr;
  std::size_t rows = 0, inner = 0, cols = 0;
  double scalar = 0, scalar2 = 0;
};

}  // namespace tutti::trainer
