// What each collective does, said plainly: the tests' own statement, which shares nothing with types/collective.h.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/any_call.h"
#include "runtime/expected.h"
#include "tutti/communicator.h"

namespace tutti::internal {

struct Shape {
  Collective collective;
  std::size_t count;
  DType dtype;
  Op op;
  int root;
};

inline constexpr Collective kWithBuffers[] = {
    Collective::all_reduce,     Collective::reduce_scatter, Collective::all_gather, Collective::broadcast,
    Collective::reduce,         Collective::gather,         Collective::scatter,    Collective::scan,
    Collective::exclusive_scan, Collective::transfer,       Collective::all_to_all};

// Elements of a rank's input and output. The root has the most.
std::size_t input_elems(const Shape& shape, int ranks, int rank);
std::size_t output_elems(const Shape& shape, int ranks, int rank);
inline std::size_t input_elems(const Shape& shape, int ranks) { return input_elems(shape, ranks, shape.root); }
inline std::size_t output_elems(const Shape& shape, int ranks) { return output_elems(shape, ranks, shape.root); }

// Bytes from a rank's input to its output, in place.
std::ptrdiff_t in_place_shift(const Shape& shape, int rank);

// What must come out, by rank, of random_input().
std::vector<std::vector<std::byte>> expected(const Shape& shape, int ranks);

// "gather of 5 int8 on 3 ranks"
std::string name_of(const Shape& shape, int ranks);

inline void call(Communicator& world, const Shape& shape, std::byte* in, std::byte* out,
                 const CallOptions& options = {}) {
  AnyCall::run(world,
               {.collective = shape.collective,
                .dtype = shape.dtype,
                .op = shape.op,
                .order = options.order,
                .algorithm = options.algorithm,
                .root = shape.root,
                .count = shape.count},
               in, out, options.stream);
}

}  // namespace tutti::internal
