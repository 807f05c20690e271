// What ranks bring in tests, and what they should get.
#pragma once

#include <cstddef>
#include <vector>

#include "tutti/types.h"

namespace tutti::internal {

// Random bits, with infinities and NaNs left in: rank r's input of `count` elements.
std::vector<std::byte> random_input(int rank, std::size_t count, DType dtype);

// The canonical reduction of all ranks' random inputs, one element at a time. Takes no lock, though ranks that are
// threads all compute the same: a lock would order their calls, and hide races from ThreadSanitizer.
std::vector<std::byte> expected_reduction(int ranks, std::size_t count, DType dtype, Op op);

}  // namespace tutti::internal
