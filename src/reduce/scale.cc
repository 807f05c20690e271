#include "reduce/scale.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "reduce/reduction.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

constexpr std::size_t kBlockBytes = 8192;  // of copies of the scalar: they stay in the first-level cache

const std::byte* bytes_of(const Scalar& scalar) { return reinterpret_cast<const std::byte*>(&scalar.bits); }

// In the accumulation type: exact.
Scalar widened(DType dtype, const Scalar& scalar) {
  if (!is_narrow_float(dtype) || scalar.dtype == DType::float32) return scalar;
  Scalar wide{DType::float32, 0};
  const ReduceSource source{bytes_of(scalar)};
  const ReduceTarget target{reinterpret_cast<std::byte*>(&wide.bits), true};
  Reduction({.dtype = dtype}, {&source, 1}).run({&source, 1}, {&target, 1}, 1, false);
  return wide;
}

}  // namespace

bool can_scale(DType dtype, const Scalar& scalar) {
  return scalar.dtype == dtype || (is_narrow_float(dtype) && scalar.dtype == DType::float32);
}

// A product of two sources, of which one is the scalar again and again.
void scale(DType dtype, const Scalar& scalar, const std::byte* from, std::byte* to, std::size_t count) {
  const Scalar factor = widened(dtype, scalar);
  const std::size_t element = size_of(dtype), accumulation = accumulation_size_of(dtype);
  const std::size_t at_once = std::min(count, kBlockBytes / accumulation);
  alignas(64) std::array<std::byte, kBlockBytes> factors;
  for (std::size_t i = 0; i < at_once; ++i) std::memcpy(&factors[i * accumulation], bytes_of(factor), accumulation);

  ReduceSource sources[] = {{from, 0, false}, {factors.data(), 1, is_narrow_float(dtype)}};
  const Reduction product({.dtype = dtype, .op = Op::prod, .finish = true}, sources);
  for (std::size_t done = 0; done < count; done += at_once) {
    sources[0].data = from + done * element;
    const ReduceTarget target{to + done * element};
    product.run(sources, {&target, 1}, std::min(at_once, count - done), false);
  }
}

}  // namespace tutti::internal
