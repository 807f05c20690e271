#include "runtime/unequal_rows.h"

#include <algorithm>
#include <numeric>

namespace tutti::internal {
namespace {

std::size_t ranks_of(const RowsShape& shape) { return shape.lengths[0].size(); }

RowsOfBytes cut(const std::vector<std::byte>& whole, const std::vector<std::size_t>& counts, DType dtype) {
  RowsOfBytes rows;
  const std::byte* at = whole.data();
  for (const std::size_t count : counts) {
    rows.emplace_back(at, at + count * size_of(dtype));
    at += count * size_of(dtype);
  }
  return rows;
}

std::size_t sum(const std::vector<std::size_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

}  // namespace

RowsShape random_rows(Collective collective, int ranks, DType dtype, Op op, bool symmetric, std::mt19937_64& random) {
  const auto n = static_cast<std::size_t>(ranks);
  RowsShape shape{collective, dtype, op, static_cast<int>(random() % n), {}};
  constexpr std::size_t kLengths[] = {0, 0, 1, 3, 17, 64, 1000, 4099};
  shape.lengths.resize(collective == Collective::all_to_all ? n : 1, std::vector<std::size_t>(n));
  for (std::size_t from = 0; from < shape.lengths.size(); ++from)
    for (std::size_t to = 0; to < n; ++to)
      shape.lengths[from][to] =
          symmetric && shape.lengths.size() > 1 && to < from ? shape.lengths[to][from] : kLengths[random() % 8];
  return shape;
}

PlacedRows placed(const std::vector<std::size_t>& counts, std::mt19937_64& random) {
  PlacedRows rows{counts, std::vector<std::size_t>(counts.size()), 0};
  if (counts.size() < 2) {
    rows.extent = sum(counts);
    return rows;
  }
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  std::size_t end = 0;
  for (const std::size_t row : order) {
    rows.displacements[row] = end + random() % 3;
    end = rows.displacements[row] + counts[row];
    if (counts[row] > 0) rows.extent = end;
  }
  return rows;
}

std::vector<std::size_t> input_rows(const RowsShape& shape, int rank) {
  const auto me = static_cast<std::size_t>(rank);
  switch (shape.collective) {
    case Collective::all_gather:
    case Collective::gather: return {shape.lengths[0][me]};
    case Collective::scatter: return rank == shape.root ? shape.lengths[0] : std::vector<std::size_t>{};
    case Collective::all_to_all: return shape.lengths[me];
    default: return shape.lengths[0];
  }
}

std::vector<std::size_t> output_rows(const RowsShape& shape, int rank) {
  const auto me = static_cast<std::size_t>(rank);
  switch (shape.collective) {
    case Collective::all_gather: return shape.lengths[0];
    case Collective::gather: return rank == shape.root ? shape.lengths[0] : std::vector<std::size_t>{};
    case Collective::all_to_all: {
      std::vector<std::size_t> rows;
      for (const auto& from : shape.lengths) rows.push_back(from[me]);
      return rows;
    }
    default: return {shape.lengths[0][me]};
  }
}

RowsOfBytes given_rows(const RowsShape& shape, int rank) {
  const std::vector<std::size_t> counts = input_rows(shape, rank);
  return cut(random_input(rank, sum(counts), shape.dtype), counts, shape.dtype);
}

RowsOfBytes expected_rows(const RowsShape& shape, int rank) {
  const auto me = static_cast<std::size_t>(rank);
  RowsOfBytes rows;
  switch (shape.collective) {
    case Collective::scatter: return {given_rows(shape, shape.root)[me]};
    case Collective::reduce_scatter: {
      const auto whole =
          expected_reduction(static_cast<int>(ranks_of(shape)), sum(shape.lengths[0]), shape.dtype, shape.op);
      return {cut(whole, shape.lengths[0], shape.dtype)[me]};
    }
    case Collective::gather:
      if (rank != shape.root) return {};
      break;
    default: break;
  }
  for (std::size_t from = 0; from < ranks_of(shape); ++from)
    rows.push_back(given_rows(shape, static_cast<int>(from))[shape.collective == Collective::all_to_all ? me : 0]);
  return rows;
}

Work start(Communicator& world, const RowsShape& it, const void* in, const PlacedRows& in_rows, void* out,
           const PlacedRows& out_rows, const CallOptions& how) {
  switch (it.collective) {
    case Collective::all_gather: return world.start_all_gather_v(in, out, out_rows.given(), it.dtype, how);
    case Collective::reduce_scatter:
      return world.start_reduce_scatter_v(in, in_rows.given(), out, it.dtype, it.op, how);
    case Collective::gather:
      return world.start_gather_v(in, in_rows.extent, out, out_rows.given(), it.dtype, it.root, how);
    case Collective::scatter:
      return world.start_scatter_v(in, in_rows.given(), out, out_rows.extent, it.dtype, it.root, how);
    default: return world.start_all_to_all_v(in, in_rows.given(), out, out_rows.given(), it.dtype, how);
  }
}

void run(Communicator& world, const RowsShape& it, const void* in, const PlacedRows& in_rows, void* out,
         const PlacedRows& out_rows, const CallOptions& how) {
  switch (it.collective) {
    case Collective::all_gather: return world.all_gather_v(in, out, out_rows.given(), it.dtype, how);
    case Collective::reduce_scatter: return world.reduce_scatter_v(in, in_rows.given(), out, it.dtype, it.op, how);
    case Collective::gather: return world.gather_v(in, in_rows.extent, out, out_rows.given(), it.dtype, it.root, how);
    case Collective::scatter: return world.scatter_v(in, in_rows.given(), out, out_rows.extent, it.dtype, it.root, how);
    default: return world.all_to_all_v(in, in_rows.given(), out, out_rows.given(), it.dtype, how);
  }
}

std::string name_of(const RowsShape& shape) {
  return std::string(to_string(shape.collective)) + "_v of " + std::string(to_string(shape.dtype)) + " on " +
         std::to_string(ranks_of(shape)) + " ranks, root " + std::to_string(shape.root);
}

}  // namespace tutti::internal
