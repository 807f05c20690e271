// Calls whose rows are not all of one length, said plainly: what each rank passes, and what must come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "runtime/any_call.h"
#include "runtime/expected.h"
#include "tutti/communicator.h"

namespace tutti::internal {

inline constexpr Collective kWithRows[] = {Collective::all_gather, Collective::reduce_scatter, Collective::gather,
                                           Collective::scatter, Collective::all_to_all};

struct RowsShape {
  Collective collective;
  DType dtype;
  Op op;
  int root;
  std::vector<std::vector<std::size_t>> lengths;  // from each rank to each: of all_to_all; otherwise [0][r] is row r's
};

// Lengths of n ranks: many are 0. symmetric: as long back as there.
RowsShape random_rows(Collective collective, int ranks, DType dtype, Op op, bool symmetric, std::mt19937_64& random);

// The rows of one buffer, in any order and with gaps.
struct PlacedRows {
  std::vector<std::size_t> counts, displacements;
  std::size_t extent = 0;  // elements up to the end of the last row
  UnequalRows given() const { return {counts, displacements}; }
};
PlacedRows placed(const std::vector<std::size_t>& counts, std::mt19937_64& random);

// The lengths of the rows of a rank's input and output, in the order of the ranks.
std::vector<std::size_t> input_rows(const RowsShape& shape, int rank);
std::vector<std::size_t> output_rows(const RowsShape& shape, int rank);

// The rows themselves: of a rank's random input, and of what must come out.
using RowsOfBytes = std::vector<std::vector<std::byte>>;
RowsOfBytes given_rows(const RowsShape& shape, int rank);
RowsOfBytes expected_rows(const RowsShape& shape, int rank);

// The public call.
Work start(Communicator& world, const RowsShape& shape, const void* in, const PlacedRows& in_rows, void* out,
           const PlacedRows& out_rows, const CallOptions& how);
void run(Communicator& world, const RowsShape& shape, const void* in, const PlacedRows& in_rows, void* out,
         const PlacedRows& out_rows, const CallOptions& how);

std::string name_of(const RowsShape& shape);  // "all_gather_v of int8 on 3 ranks"

}  // namespace tutti::internal
