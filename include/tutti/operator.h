/// @file
/// Operators that carry more than their name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>

#include "tutti/types.h"

namespace tutti {

/// A number of an element type. A value.
struct Scalar {
  /// The number `value`.
  template <class T>
  static Scalar of(T value) {
    Scalar scalar{dtype_of<T>, 0};
    std::memcpy(&scalar.bits, &value, sizeof value);
    return scalar;
  }
  DType dtype;         ///< the type
  std::uint64_t bits;  ///< the number as it lies in memory, in the first size_of(dtype) bytes
};

/// What a call combines with. An Op converts implicitly. A value: it owns nothing.
struct Operator {
  /// An operator that is no more than its name.
  Operator(Op which) : op(which) {}
  Op op;                           ///< the same on every rank
  std::optional<Scalar> scalar;    ///< of Op::premul_sum: this rank's own
  std::uint64_t communicator = 0;  ///< of Op::custom: whose it is, as Communicator::make_operator() has set it
  std::uint8_t number = 0;         ///< of Op::custom: which one, likewise
};

/// A caller's own way to combine: out[i] = left[i] combined with right[i], for i in [0, count). The ranks behind `left`
/// stand before those behind `right`. `out` may be `left` or `right`; otherwise nothing overlaps.
///
/// Elements are of the accumulation type: floats, where those of the call are 16-bit or 8-bit floats. They are aligned
/// to it. One call of a collective calls the function many times, with pieces of any length.
///
/// It is called by any thread that advances calls of the job, one at a time for each communicator, in the default
/// floating-point environment. It must not call the library. It should not wait: other calls of the job wait for it. If
/// it throws, the call fails on every rank with Error{aborted}; what() of the exception is part of the text.
using CombineFunction = std::function<void(const void* left, const void* right, void* out, std::size_t count)>;

/// A sum before which each rank multiplies its input by a scalar of its own, as NCCL's PreMulSum does. The input itself
/// stays as it is.
///
/// The result is that of Op::sum, if rank r had brought in[i] * scalar. That product is made in the accumulation type
/// (size_of() and accumulation_size_of() in tutti/types.h) and rounded to the element type: once, to nearest even.
/// Products of integers wrap around; those of booleans are "and". So the bits are the same with every algorithm.
///
/// The scalar has the element type of the call, or is a float where elements are 16-bit or 8-bit floats; another type
/// is refused with Error{invalid_argument}. All ranks must pass premul_sum(); the scalars may differ.
///
/// A rank whose input has another size than its output, or that has no output, takes memory for the products: as much
/// as its input has. If there is none, the call fails with Error{system}.
template <class T>
Operator premul_sum(T scalar) {
  Operator made(Op::premul_sum);
  made.scalar = Scalar::of(scalar);
  return made;
}

}  // namespace tutti
