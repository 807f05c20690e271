// What can be computed with tensors. Each function returns a new tensor that backward() differentiates through, and
// throws Error{invalid_argument} naming both shapes where they do not fit. Tensors of one call are on one device, and
// so is the result. Each runs in one fixed order of arithmetic: the same inputs give the same bits, on every device but
// for tanh(), of which CUDA has its own (within 2 units in the last place).
#pragma once

#include "trainer/tensor.h"

namespace tutti::trainer {

// Element by element. The shapes are equal; add() also takes a {1, cols} right side, added to every row (a bias).
Tensor add(const Tensor& a, const Tensor& b);
Tensor sub(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor scale(const Tensor& a, double factor);
Tensor square(const Tensor& a);
Tensor relu(const Tensor& a);  // its derivative at 0 is 0
Tensor tanh(const Tensor& a);

Tensor matmul(const Tensor& a, const Tensor& b);  // {m, k} by {k, n} is {m, n}

// {1, 1}. In groups (task.h), as every sum over rows is, so that the error grows as the logarithm of the count.
Tensor sum(const Tensor& a);
Tensor mean(const Tensor& a);  // {1, 1}; of no elements: Error{invalid_argument}

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return sub(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return mul(a, b); }
inline Tensor operator*(double factor, const Tensor& a) { return scale(a, factor); }

}  // namespace tutti::trainer
