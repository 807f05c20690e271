// The numbers that `tutti bench` sends, and what must come back, bit for bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "bench/options.h"
#include "schedule/partition.h"
#include "schedule/verify.h"
#include "tutti/types.h"

namespace tutti::internal::tools {

// Inputs repeat after this many elements: a prime, so that a misplaced chunk never meets the numbers of its right
// place. It bounds what a check costs: the result of each combining order is worked out for one period only.
inline constexpr std::size_t kPeriod = 65521;

// out[0, count) = elements [first, first + count) of the message that `rank` contributes. A function of (rank, element,
// dtype) alone. Integers take all values; floating-point numbers have both signs and thirteen binary magnitudes, so
// that another order of adding shows, and one in 4096 is denormal.
void write_input(std::byte* out, std::size_t first, std::size_t count, DType dtype, int rank);

// How the elements of one message must be combined.
struct CombiningOrder {
  Partition partition;
  std::vector<Expression> slices;
};

// What the verifier derives for the schedules that run this call: count as in the call, an algorithm that is not
// automatic. Throws Error{invalid_argument} when it finds that they do not do what is asked.
CombiningOrder derive_order(const BenchOptions& options, Algorithm algorithm, int ranks, std::size_t count);

// The right results, worked out by a scalar evaluation of such an order.
class Expectation {
 public:
  Expectation(const BenchOptions& options, int ranks) : options_(options), ranks_(ranks) {}

  // How many elements of `rank`'s output differ in any bit from what they should be. `out` holds `count` elements, or
  // ranks * count of an all_gather. `order` is used by reductions alone.
  std::uint64_t count_wrong(const std::byte* out, std::size_t count, int rank, const CombiningOrder& order);

 private:
  using Table = std::vector<std::byte>;  // kPeriod elements

  const Table& combined(const Expression& expression);
  const Table& input_of(int rank);
  // Compares out[0, count) with elements [first, first + count) of the message whose period is `table`.
  std::uint64_t differing(const std::byte* out, const Table& table, std::size_t first, std::size_t count) const;

  const BenchOptions& options_;
  int ranks_;
  std::map<int, Table> inputs_;
  std::map<Expression, Table> combined_;
};

// The first 64 bits of the SHA-256 of bytes[0, size).
std::uint64_t digest(const void* bytes, std::size_t size);

}  // namespace tutti::internal::tools
