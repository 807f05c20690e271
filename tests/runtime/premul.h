// Sums of which each rank scales its own part: the ranks' scalars, and what must come out, an element at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "runtime/shapes.h"

namespace tutti::internal {

// The collectives that combine.
inline constexpr Collective kCombining[] = {Collective::all_reduce, Collective::reduce_scatter, Collective::reduce,
                                            Collective::scan, Collective::exclusive_scan};

// Rank `rank`'s own; of 16-bit and 8-bit floats it is a float.
Operator premul_of(int rank, DType dtype);

// What rank `rank` must get of random_input(). shape.op is not looked at.
std::vector<std::byte> expected_premul(const Shape& shape, int ranks, int rank);

// The call as users write it, of this rank's premul_of().
Work start_premul(Communicator& world, const Shape& shape, ConstBuffer in, Buffer out, const CallOptions& how = {});

}  // namespace tutti::internal
