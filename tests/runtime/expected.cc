#include "runtime/expected.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>

#include "reduce/float_environment.h"
#include "reduce/reference.h"
#include "schedule/builder.h"

namespace tutti::internal {
std::vector<std::byte> random_input(int rank, std::size_t count, DType dtype) {
  std::mt19937_64 random(1000003u * static_cast<unsigned>(rank) + static_cast<unsigned>(dtype));
  std::vector<std::byte> bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(&bytes[i], &bits, std::min<std::size_t>(8, bytes.size() - i));
  }
  if (dtype == DType::boolean)  // half of them false: few bytes are 0 by chance
    for (std::byte& each : bytes)
      if ((each & std::byte{1}) == std::byte{0}) each = std::byte{0};
  return bytes;
}

std::vector<std::byte> expected_reduction(int ranks, std::size_t count, DType dtype, Op op) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<int> bounds(ranks + 1);
  std::iota(bounds.begin(), bounds.end(), 0);
  const auto joins = canonical_joins(bounds);
  std::vector<ReduceSource> sources(ranks);
  for (int r = 0; r < ranks; ++r) {
    inputs.push_back(random_input(r, count, dtype));
    sources[r] = {inputs.back().data(), joins[r], false};
  }
  std::vector<std::byte> result(count * size_of(dtype));
  const ReduceTarget target{result.data(), false};
  const FloatEnvironment environment;
  if (count > 0)
    reduce_reference({.dtype = dtype, .op = op, .finish = true, .leaves = static_cast<std::uint32_t>(ranks)}, sources,
                     {&target, 1}, count);
  return result;
}

}  // namespace tutti::internal
