// `tutti bench reduction`: the reduction alone, of n sources into one target, by one process without ranks, on the CPU
// or on a GPU, beside copies of as many bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/options.h"
#include "cuda/device.h"
#include "reduce/reduce.h"

namespace tutti::internal::tools {

// The memory of one device, and calls over it. Source i holds what write_input() gives rank i.
class ReduceSubject {
 public:
  virtual ~ReduceSubject() = default;

  // Mean microseconds of `calls` calls back to back, after one that is not counted. Of copies, each reads `bytes` of
  // what the reductions read, and writes them where nothing else lies.
  virtual double reduce_us(std::size_t count, std::size_t calls) = 0;
  virtual double copy_us(std::size_t bytes, std::size_t calls) = 0;

  // Overwrites the first `count` elements of the target.
  virtual void spoil(std::size_t count) = 0;
  // to[0, count) = target[first, first + count). count: at most kPeriod.
  virtual void read(std::byte* to, std::size_t first, std::size_t count) = 0;
};

// max_count: the largest that it will be given. Throw Error{system} where there is not so much memory.
std::unique_ptr<ReduceSubject> host_subject(const BenchOptions& options, std::size_t max_count);
std::unique_ptr<ReduceSubject> gpu_subject(const BenchOptions& options, const cuda::Device& gpu, std::size_t max_count);

// Where things lie in a subject's memory: the sources, the target, what copies write. They do not collide in a cache,
// and are aligned to 256 bytes.
struct ReduceMemory {
  ReduceMemory(const BenchOptions& options, std::size_t max_count);
  std::size_t stride_bytes, sources;
  std::size_t target() const { return sources * stride_bytes; }
  std::size_t copies() const { return target() + stride_bytes; }
  std::size_t bytes;  // of all
};

// What reduces them: along the canonical tree over the sources.
struct ReduceCall {
  ReduceCall(const BenchOptions& options, const ReduceMemory& memory, std::byte* at);
  ReduceSpec spec;
  std::vector<ReduceSource> sources;
  ReduceTarget target;
};

struct ReduceRow {
  std::size_t bytes = 0;  // of one source
  double us = 0;
  std::optional<double> limit_us;  // nothing where there are no bytes
  std::uint64_t wrong = 0;
};

std::size_t sources_of(const BenchOptions& options);
// Bytes that such a call reads and writes.
std::size_t traffic_bytes(const ReduceRow& row, const BenchOptions& options);

// Checks one call, then times rounds of reductions and of copies in turn, then checks again.
ReduceRow measure(ReduceSubject& subject, const BenchOptions& options, std::size_t count);

// Each ends in a newline. gpu: nothing on the CPU.
std::string reduce_head(const BenchOptions& options, const std::optional<cuda::Device>& gpu);
std::string table_row(const ReduceRow& row, const BenchOptions& options);
std::string json_row(const ReduceRow& row, const BenchOptions& options, const std::optional<cuda::Device>& gpu);

// The command. Throws what is wrong, as Subcommand::run() may.
int run_bench_reduce(const BenchOptions& options);

}  // namespace tutti::internal::tools
