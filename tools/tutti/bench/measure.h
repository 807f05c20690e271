// Measures and checks one size after the other, on every rank together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "bench/memory.h"
#include "bench/options.h"
#include "bench/table.h"
#include "bench/values.h"
#include "tutti/communicator.h"
#include "types/collective.h"

namespace tutti::internal::tools {

// Collective, and the same on every rank: each gives its time of every round; the median of the slowest rank's.
double slowest_us(Communicator& world, const std::vector<double>& rounds);

class Bench {
 public:
  // Collective. `max_count` is the largest that measure() will be given. device: the GPU that has the buffers. Both
  // references must outlive the object.
  Bench(Communicator& world, const BenchOptions& options, std::size_t max_count, std::optional<int> device = {});

  // Collective; every rank gets the same row, without a limit. Checks one call on fresh buffers, then times rounds of
  // calls, then, where repeated calls leave the result as it is, checks again. The row's hash is that of one rank's
  // results if they are the same on all, otherwise that of all ranks' hashes.
  BenchRow measure(std::size_t count);

  const BenchBuffers& buffers() const { return buffers_; }

 private:
  void aim_at(std::size_t count);
  void prepare();  // fresh inputs, spoilt outputs
  void call();
  void check(BenchRow& row);
  std::uint64_t late_barriers();
  std::size_t calls_a_round();
  double time_round(std::size_t calls);
  bool repeatable() const;  // whether a second call on the same buffers gives the same result

  template <class T>
  std::vector<T> gather(const std::vector<T>& mine);

  Communicator& world_;
  const BenchOptions& options_;
  const Distribution holds_;
  Expectation expectation_;
  std::uint64_t table_;  // its hash
  BenchBuffers buffers_;

  // The message aimed at.
  std::size_t count_ = 0;                     // of the call
  std::size_t in_count_ = 0, out_count_ = 0;  // elements of this rank's input and output
  std::byte *in_ = nullptr, *out_ = nullptr;
  CombiningOrder order_;
};

}  // namespace tutti::internal::tools
