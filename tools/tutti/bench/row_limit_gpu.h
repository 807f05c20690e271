// What a GPU's copies alone take for the bytes that a collective must move at least.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "bench/memory.h"
#include "bench/options.h"
#include "tutti/communicator.h"

namespace tutti::internal::tools {

// How many bytes of `rank`'s memory a call must at least read and write, if its whole message has `bytes`.
struct GpuTraffic {
  std::size_t read = 0, written = 0;
  friend bool operator==(const GpuTraffic&, const GpuTraffic&) = default;
};
GpuTraffic gpu_traffic(const BenchOptions& options, int rank, int ranks, std::size_t bytes);

class GpuLimit {
 public:
  virtual ~GpuLimit() = default;

  // Collective, and the same on every rank: mean microseconds of calls back to back, the slowest rank's, median of the
  // rounds. Nothing if there are no bytes. Overwrites the second buffers of the memory.
  std::optional<double> measure_us(std::size_t bytes);

 protected:
  GpuLimit(Communicator& world, const BenchOptions& options) : world_(world), options_(options) {}
  virtual double time(std::size_t bytes, std::size_t calls) = 0;  // of this rank

  Communicator& world_;
  const BenchOptions& options_;
};

// If the ranks are threads with their memory on one GPU: copies within that memory that read and write, in all, as many
// bytes as the collective must, by the GPU's clock. If they are processes: what every rank reads goes to pinned memory
// while what it writes comes from there, on all ranks at once. Collective; all references must outlive it.
std::unique_ptr<GpuLimit> gpu_limit(Communicator& world, const BenchOptions& options, const BenchBuffers& memory,
                                    int device);

}  // namespace tutti::internal::tools
