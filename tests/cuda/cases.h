// Reductions to try: every type, operator, number of sources and alignment, and whatever runs them beside the CPU's.
#pragma once

#include <functional>
#include <random>
#include <span>
#include <vector>

#include "reduce/inputs.h"
#include "reduce/reduce.h"

namespace tutti::internal::cuda_test {

// Skews are in elements of the buffer's own form, from an address that is a multiple of 64.
struct Buffer {
  std::size_t skew = 0;
  bool partial = false;
  int in_place_of = -1;  // a target that is the memory of this source
};
struct Case {
  ReduceSpec spec;
  std::vector<std::uint8_t> joins;
  std::vector<Buffer> sources, targets;
  std::size_t count = 0;
};

// Does what reduce() does.
using Runner = std::function<void(const ReduceSpec&, std::span<const ReduceSource>, std::span<const ReduceTarget>,
                                  std::size_t count)>;

// Compares every bit of every target with the CPU's, and that nothing around them has changed. Fails the test if not.
void expect_same_bits(const Case& each, const Runner& runner, reduce_test::Kind kind, std::mt19937_64& random);

// All cases of a type that the tests go through: for each operator, 1 to 8, 9, 16, 33 and 100 sources, each way to miss
// alignment, with 1 to 3 targets, odd counts, any mix of partial results, in place or not. At most `most_count`
// elements.
void for_each_case(DType dtype, std::size_t most_count, std::mt19937_64& random,
                   const std::function<void(const Case&, reduce_test::Kind)>& body);

}  // namespace tutti::internal::cuda_test
