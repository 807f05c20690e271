#include "runtime/premul.h"

#include <cstring>
#include <stdexcept>

#include "reduce/element.h"
#include "reduce/float_environment.h"
#include "reduce/reference.h"
#include "schedule/builder.h"

namespace tutti::internal {
namespace {

using Bytes = std::vector<std::byte>;

// Calls body.operator()<T>() for the type.
template <class Body>
auto with_type(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::float32: return body.template operator()<float>();
    case DType::float64: return body.template operator()<double>();
    case DType::float16: return body.template operator()<float16>();
    case DType::bfloat16: return body.template operator()<bfloat16>();
    case DType::int8: return body.template operator()<std::int8_t>();
    case DType::uint8: return body.template operator()<std::uint8_t>();
    case DType::int32: return body.template operator()<std::int32_t>();
    case DType::uint32: return body.template operator()<std::uint32_t>();
    case DType::int64: return body.template operator()<std::int64_t>();
    case DType::uint64: return body.template operator()<std::uint64_t>();
    case DType::boolean: return body.template operator()<boolean>();
    case DType::float8_e4m3: return body.template operator()<float8_e4m3>();
    case DType::float8_e5m2: return body.template operator()<float8_e5m2>();
  }
  throw std::logic_error("no such type");
}

// Of floating-point types one whose products are rounded, of integers an odd one.
template <class T>
AccumulationOf<T> scalar_of(int rank) {
  if constexpr (std::floating_point<AccumulationOf<T>>)
    return static_cast<AccumulationOf<T>>(0.7) + static_cast<AccumulationOf<T>>(rank) / 3;
  else if constexpr (std::same_as<T, boolean>)
    return rank % 3 != 1 ? 1 : 0;
  else
    return static_cast<T>(3 - 4 * rank);
}

template <class T>
void multiply(Bytes& elements, int rank) {
  constexpr Op product = std::same_as<T, boolean> ? Op::band : Op::prod;
  for (std::size_t i = 0; i < elements.size(); i += sizeof(T)) {
    T value;
    std::memcpy(&value, &elements[i], sizeof value);
    value = narrow<T>(combine<product>(widen(value), scalar_of<T>(rank)));
    std::memcpy(&elements[i], &value, sizeof value);
  }
}

// The canonical sum of the first so many ranks' products.
Bytes sum_of(int ranks, std::size_t count, DType dtype) {
  const FloatEnvironment environment;
  std::vector<Bytes> products;
  std::vector<int> bounds;
  for (int r = 0; r <= ranks; ++r) bounds.push_back(r);
  const auto joins = canonical_joins(bounds);
  std::vector<ReduceSource> sources;
  for (int r = 0; r < ranks; ++r) {
    products.push_back(random_input(r, count, dtype));
    with_type(dtype, [&]<class T>() { multiply<T>(products.back(), r); });
    sources.push_back({products.back().data(), joins[static_cast<std::size_t>(r)]});
  }
  Bytes sum(count * size_of(dtype));
  const ReduceTarget target{sum.data()};
  reduce_reference({.dtype = dtype, .op = Op::sum, .finish = true}, sources, {&target, 1}, count);
  return sum;
}

}  // namespace

Operator premul_of(int rank, DType dtype) {
  return with_type(dtype, [&]<class T>() {
    if constexpr (std::same_as<T, boolean>)
      return premul_sum(scalar_of<T>(rank) != 0);
    else
      return premul_sum(scalar_of<T>(rank));
  });
}

Bytes expected_premul(const Shape& shape, int ranks, int rank) {
  const auto n = static_cast<std::size_t>(ranks), r = static_cast<std::size_t>(rank);
  switch (shape.collective) {
    case Collective::all_reduce: return sum_of(ranks, shape.count, shape.dtype);
    case Collective::reduce: return rank == shape.root ? sum_of(ranks, shape.count, shape.dtype) : Bytes();
    case Collective::scan: return sum_of(rank + 1, shape.count, shape.dtype);
    case Collective::exclusive_scan: return rank > 0 ? sum_of(rank, shape.count, shape.dtype) : Bytes();
    default: {
      const Bytes all = sum_of(ranks, n * shape.count, shape.dtype);
      const auto bytes = static_cast<std::ptrdiff_t>(shape.count * size_of(shape.dtype));
      const auto own = all.begin() + static_cast<std::ptrdiff_t>(r) * bytes;
      return {own, own + bytes};
    }
  }
}

Work start_premul(Communicator& world, const Shape& it, ConstBuffer in, Buffer out, const CallOptions& how) {
  const Operator op = premul_of(world.rank(), it.dtype);
  switch (it.collective) {
    case Collective::all_reduce: return world.start_all_reduce(in, out, it.count, it.dtype, op, how);
    case Collective::reduce: return world.start_reduce(in, out, it.count, it.dtype, op, it.root, how);
    case Collective::scan: return world.start_scan(in, out, it.count, it.dtype, op, how);
    case Collective::exclusive_scan: return world.start_exclusive_scan(in, out, it.count, it.dtype, op, how);
    default: return world.start_reduce_scatter(in, out, it.count, it.dtype, op, how);
  }
}

}  // namespace tutti::internal
