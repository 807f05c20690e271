// What `tutti bench` prints: a table for people or one JSON object a line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "bench/options.h"
#include "cuda/device.h"
#include "tutti/types.h"

namespace tutti::internal::tools {

struct BenchRow {
  Algorithm algorithm = Algorithm::automatic;  // that ran, or whose order
  bool one_kernel = false;                     // was kept by the one kernel that did it
  std::size_t bytes = 0;                       // of the whole message
  double us = 0;
  std::optional<double> limit_us;
  std::optional<std::uint64_t> wrong;  // elements over all ranks; nothing where it cannot be told
  std::uint64_t hash = 0;              // of the results; see Bench::measure
  std::uint64_t table = 0;             // hash of the table by which algorithms are chosen
};

// GB/s as in nccl-tests, GB being 10^9 bytes: the message over the time, and what the busiest link of a rank then
// carries.
struct Bandwidth {
  double algorithm = 0, bus = 0;
};
Bandwidth bandwidth(const BenchRow& row, Collective collective, int ranks);

// Where a rank's buffers lie: on one of its host's GPUs.
struct BenchGpu {
  cuda::Device device;
  std::size_t of = 1;  // that many; the ranks of a host take them in turn
};

// Each ends in a newline. processors: what rank 0 could use when it was started. gpu: rank 0's.
std::string table_head(const BenchOptions& options, int ranks, int processors, const std::optional<BenchGpu>& gpu = {});
std::string table_row(const BenchRow& row, const BenchOptions& options, int ranks);
std::string json_row(const BenchRow& row, const BenchOptions& options, int ranks);

}  // namespace tutti::internal::tools
