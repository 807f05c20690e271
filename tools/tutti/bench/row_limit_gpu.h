// What a GPU's copies alone take for the bytes that a collective must move at least.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "bench/memory.h"
#include "bench/options.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {

// Bytes of its own memory that `rank` has read and written at least in a call whose whole message has `bytes`.
struct GpuTraffic {
  std::size_t read = 0, written = 0;
  friend bool operator==(const GpuTraffic&, const GpuTraffic&) = default;
};
GpuTraffic gpu_traffic(const BenchOptions& options, int rank, int ranks, std::size_t bytes);

class GpuLimit {
 public:
  virtual ~GpuLimit() = default;

  // Collective, and the same on every rank: mean microseconds of calls back to back, the slowest rank's, median of the
  // rounds. Nothing where there are no bytes. The second buffers of the memory hold anything then.
  std::optional<double> measure_us(std::size_t bytes);

 protected:
  GpuLimit(Communicator& world, const BenchOptions& options) : world_(world), options_(options) {}
  virtual double time(std::size_t bytes, std::size_t calls) = 0;  // of this rank

  Communicator& world_;
  const BenchOptions& options_;
};

// Of ranks that are threads with their memory on one GPU: copies from that memory to that memory which read and write
// in all as many bytes as the collective must, by the GPU's clock. Of processes: what every rank reads goes to pinned
// memory while what it writes comes from there, on all ranks at once. Collective; all references must outlive it.
std::unique_ptr<GpuLimit> gpu_limit(Communicator& world, const BenchOptions& options, const BenchBuffers& memory,
                                    int device);

}  // namespace tutti::internal::tools
