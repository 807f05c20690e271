#include "runtime/shapes.h"

#include <algorithm>
#include <stdexcept>

namespace tutti::internal {
namespace {

using Bytes = std::vector<std::byte>;

Bytes part_of(const Bytes& whole, std::size_t part, std::size_t bytes) {
  const std::byte* const begin = whole.data() + part * bytes;
  return {begin, begin + bytes};
}

Bytes concatenated(const std::vector<Bytes>& inputs) {
  Bytes whole;
  for (const Bytes& input : inputs) whole.insert(whole.end(), input.begin(), input.end());
  return whole;
}

}  // namespace

std::size_t input_elems(const Shape& shape, int ranks, int rank) {
  const auto n = static_cast<std::size_t>(ranks);
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::reduce:
    case Collective::scan:
    case Collective::exclusive_scan:
    case Collective::all_gather:
    case Collective::gather: return shape.count;
    case Collective::reduce_scatter:
    case Collective::all_to_all: return n * shape.count;
    case Collective::broadcast: return rank == shape.root ? shape.count : 0;
    case Collective::transfer: return rank == 0 ? shape.count : 0;
    case Collective::scatter: return rank == shape.root ? n * shape.count : 0;
    case Collective::barrier: break;
  }
  return 0;
}

std::size_t output_elems(const Shape& shape, int ranks, int rank) {
  const auto n = static_cast<std::size_t>(ranks);
  switch (shape.collective) {
    case Collective::all_reduce:
    case Collective::broadcast:
    case Collective::reduce_scatter:
    case Collective::scan:
    case Collective::scatter: return shape.count;
    case Collective::exclusive_scan:
    case Collective::transfer: return rank > 0 ? shape.count : 0;
    case Collective::all_gather:
    case Collective::all_to_all: return n * shape.count;
    case Collective::reduce: return rank == shape.root ? shape.count : 0;
    case Collective::gather: return rank == shape.root ? n * shape.count : 0;
    case Collective::barrier: break;
  }
  return 0;
}

std::ptrdiff_t in_place_shift(const Shape& shape, int rank) {
  const auto own = static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * shape.count * size_of(shape.dtype));
  switch (shape.collective) {
    case Collective::reduce_scatter: return own;
    case Collective::all_gather: return -own;
    case Collective::gather: return rank == shape.root ? -own : 0;
    case Collective::scatter: return rank == shape.root ? own : 0;
    default: return 0;
  }
}

std::vector<Bytes> expected(const Shape& shape, int ranks) {
  const std::size_t bytes = shape.count * size_of(shape.dtype);
  const auto root = static_cast<std::size_t>(shape.root);
  std::vector<Bytes> inputs, outputs(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) inputs.push_back(random_input(r, input_elems(shape, ranks, r), shape.dtype));
  const auto reduction = [&](std::size_t count) { return expected_reduction(ranks, count, shape.dtype, shape.op); };
  const auto scattered = [&](const Bytes& whole) {
    for (std::size_t r = 0; r < outputs.size(); ++r) outputs[r] = part_of(whole, r, bytes);
  };
  switch (shape.collective) {
    case Collective::all_reduce: outputs.assign(outputs.size(), reduction(shape.count)); break;
    case Collective::reduce: outputs[root] = reduction(shape.count); break;
    case Collective::reduce_scatter: scattered(reduction(shape.count * outputs.size())); break;
    case Collective::all_gather: outputs.assign(outputs.size(), concatenated(inputs)); break;
    case Collective::gather: outputs[root] = concatenated(inputs); break;
    case Collective::broadcast: outputs.assign(outputs.size(), inputs[root]); break;
    case Collective::scatter: scattered(inputs[root]); break;
    case Collective::transfer: std::fill(outputs.begin() + 1, outputs.end(), inputs[0]); break;
    case Collective::scan:
      for (int r = 0; r < ranks; ++r)
        outputs[static_cast<std::size_t>(r)] = expected_reduction(r + 1, shape.count, shape.dtype, shape.op);
      break;
    case Collective::exclusive_scan:
      for (int r = 1; r < ranks; ++r)
        outputs[static_cast<std::size_t>(r)] = expected_reduction(r, shape.count, shape.dtype, shape.op);
      break;
    case Collective::all_to_all:
      for (std::size_t r = 0; r < outputs.size(); ++r)
        for (const Bytes& input : inputs) {
          const Bytes part = part_of(input, r, bytes);
          outputs[r].insert(outputs[r].end(), part.begin(), part.end());
        }
      break;
    case Collective::barrier: break;
  }
  return outputs;
}

std::string name_of(const Shape& shape, int ranks) {
  return std::string(to_string(shape.collective)) + " of " + std::to_string(shape.count) + " " +
         std::string(to_string(shape.dtype)) + " on " + std::to_string(ranks) + " ranks";
}

}  // namespace tutti::internal
