// The arithmetic of a kernel on whole cells, element by element, by reduce/element.h alone.
#pragma once

#include "cuda/cell.h"
#include "types/kinds.h"

namespace tutti::internal::cuda {

// How elements lie in cells. 16-bit and 8-bit floats that meet partial results (mixed) go four at a time: 8 or 4 bytes
// of elements beside 16 bytes of float32. Of 8-bit floats alone a cell has 8: as float32 they take the registers of 8
// 16-bit floats, and of more there is no room.
template <class T_, Op op_, bool kMixed_ = false>
struct Form {
  using T = T_;
  using A = AccumulationOf<T>;
  static constexpr Op op = op_;
  static constexpr bool kMixed = kMixed_;
  // Of a cell of elements; a cell of partial results has 16.
  static constexpr int kBytes = kMixed ? 4 * sizeof(T) : Float8<T> ? 8 : 16;
  static constexpr int kElements = kBytes / sizeof(T);
  static constexpr int kPlanes = kElements * sizeof(A) / 16;
};

// Calls body.operator()<F>() for the form of these types with the operator; all that kernels are compiled for.
template <class T, bool kMixed = false, class Body>
auto with_floating_form(Op op, const Body& body) {
  switch (op) {
    case Op::sum: return body.template operator()<Form<T, Op::sum, kMixed>>();
    case Op::prod: return body.template operator()<Form<T, Op::prod, kMixed>>();
    case Op::min: return body.template operator()<Form<T, Op::min, kMixed>>();
    case Op::max: return body.template operator()<Form<T, Op::max, kMixed>>();
    default: return body.template operator()<Form<T, Op::avg, kMixed>>();
  }
}
// Sums and products of signed integers are those of unsigned ones.
template <class Signed, class Body>
auto with_integer_form(bool is_signed, Op op, const Body& body) {
  using Unsigned = std::make_unsigned_t<Signed>;
  switch (op) {
    case Op::sum: return body.template operator()<Form<Unsigned, Op::sum>>();
    case Op::prod: return body.template operator()<Form<Unsigned, Op::prod>>();
    case Op::min:
      return is_signed ? body.template operator()<Form<Signed, Op::min>>()
                       : body.template operator()<Form<Unsigned, Op::min>>();
    case Op::max:
      return is_signed ? body.template operator()<Form<Signed, Op::max>>()
                       : body.template operator()<Form<Unsigned, Op::max>>();
    default:
      return is_signed ? body.template operator()<Form<Signed, Op::avg>>()
                       : body.template operator()<Form<Unsigned, Op::avg>>();
  }
}

template <class T, class Body>
auto with_bits_form(Op op, const Body& body) {
  switch (op) {
    case Op::band: return body.template operator()<Form<T, Op::band>>();
    case Op::bor: return body.template operator()<Form<T, Op::bor>>();
    default: return body.template operator()<Form<T, Op::bxor>>();
  }
}

// The elements of a cell in the accumulation type.
template <class F>
struct Values {
  Cell plane[F::kPlanes];
};

template <class F>
TUTTI_HOST_DEVICE constexpr typename F::A value_of(const Values<F>& values, int i) {
  constexpr int kPerPlane = 16 / sizeof(typename F::A);
  return element_of<typename F::A>(values.plane[i / kPerPlane], i % kPerPlane);
}
template <class F>
TUTTI_HOST_DEVICE constexpr void put_value(Values<F>& values, int i, typename F::A value) {
  constexpr int kPerPlane = 16 / sizeof(typename F::A);
  put_element(values.plane[i / kPerPlane], i % kPerPlane, value);
}

// Of four booleans: 1 in each byte that is not 0.
TUTTI_HOST_DEVICE constexpr std::uint32_t ones_where_set(std::uint32_t bytes) {
  const std::uint32_t low = (bytes & 0x7f7f7f7fu) + 0x7f7f7f7fu;  // bit 7 of a byte: one of its lower bits is set
  return (low | bytes) >> 7 & 0x01010101u;
}

template <class F>
TUTTI_HOST_DEVICE constexpr Values<F> widened(const Cell& cell, bool partial) {
  if constexpr (NarrowFloat<typename F::T>) {
    if (F::kMixed && partial) return {{cell}};
    Values<F> values{};
    TUTTI_UNROLL
    for (int i = 0; i < F::kElements; ++i) put_value<F>(values, i, widen(element_of<typename F::T>(cell, i)));
    return values;
  } else if constexpr (std::same_as<typename F::T, boolean>) {
    Cell ones{};
    TUTTI_UNROLL
    for (int i = 0; i < 4; ++i) ones.word[i] = ones_where_set(cell.word[i]);
    return {{ones}};
  } else {
    return {{cell}};
  }
}

template <Op op>
TUTTI_HOST_DEVICE constexpr Cell combined_bits(const Cell& a, const Cell& b) {
  Cell result{};
  TUTTI_UNROLL
  for (int i = 0; i < 4; ++i) result.word[i] = combine<op>(a.word[i], b.word[i]);
  return result;
}

template <class F>
TUTTI_HOST_DEVICE constexpr Values<F> combined(const Values<F>& a, const Values<F>& b) {
  if constexpr (combines_bits(F::op)) return {{combined_bits<F::op>(a.plane[0], b.plane[0])}};
  Values<F> result{};
  TUTTI_UNROLL
  for (int i = 0; i < F::kElements; ++i) put_value<F>(result, i, combine<F::op>(value_of<F>(a, i), value_of<F>(b, i)));
  return result;
}

// What is stored: the mean where the operator is one, not rounded yet.
template <class F>
TUTTI_HOST_DEVICE constexpr Values<F> finished(const Values<F>& values, std::uint32_t leaves) {
  if constexpr (F::op == Op::avg) {
    Values<F> result{};
    TUTTI_UNROLL
    for (int i = 0; i < F::kElements; ++i) put_value<F>(result, i, average(value_of<F>(values, i), leaves));
    return result;
  } else {
    return values;
  }
}

template <class F>
TUTTI_HOST_DEVICE constexpr Cell narrowed(const Values<F>& values) {
  Cell cell{};
  TUTTI_UNROLL
  for (int i = 0; i < F::kElements; ++i) put_element(cell, i, narrow<typename F::T>(value_of<F>(values, i)));
  return cell;
}

// As a partial result. Requires one plane.
template <class F>
TUTTI_HOST_DEVICE constexpr Cell canonical_cell(const Values<F>& values) {
  static_assert(F::kPlanes == 1);
  Cell cell{};
  TUTTI_UNROLL
  for (int i = 0; i < F::kElements; ++i) put_element(cell, i, canonical(value_of<F>(values, i)));
  return cell;
}

// The cells of some sources, as loaded.
template <int kSize_>
struct Batch {
  static constexpr int kSize = kSize_;
  Cell cell[kSize];
  std::uint32_t partial;  // a bit each
};

// T[kFirst, min(kFirst + kSize, size)) over the batch. The canonical tree over any `size` is the complete binary one
// less the leaves that are not there, so one tree serves all. `size` is the same in all threads: nothing diverges.
template <class F, int kFirst, int kSize, class Batch>
TUTTI_HOST_DEVICE constexpr Values<F> tree(const Batch& batch, int size) {
  if constexpr (kSize == 1) {
    return widened<F>(batch.cell[kFirst], (batch.partial >> kFirst & 1) != 0);
  } else {
    constexpr int kHalf = kSize / 2;
    const Values<F> left = tree<F, kFirst, kHalf>(batch, size);
    if (size <= kFirst + kHalf) return left;
    return combined<F>(left, tree<F, kFirst + kHalf, kHalf>(batch, size));
  }
}

}  // namespace tutti::internal::cuda
