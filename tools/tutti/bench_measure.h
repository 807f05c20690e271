// Measures and checks one size after the other, on every rank together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "bench_options.h"
#include "bench_table.h"
#include "bench_values.h"
#include "tutti/communicator.h"

namespace tutti::tools {

// Memory for the benchmark's messages, aligned to pages: shared with the peers (symmetric) or this rank's own.
class BenchMemory {
 public:
  BenchMemory() = default;
  BenchMemory(Communicator& world, std::size_t bytes, bool symmetric);  // collective when symmetric
  std::byte* data() const {
    return symmetric_.data() != nullptr ? static_cast<std::byte*>(symmetric_.data()) : own_.get();
  }

 private:
  struct Free {
    void operator()(std::byte* memory) const;
  };
  Memory symmetric_;
  std::unique_ptr<std::byte, Free> own_;
};

class Bench {
 public:
  // Collective. `max_count` is the largest that measure() will be given. Both references must outlive the object.
  Bench(Communicator& world, const BenchOptions& options, std::size_t max_count);

  // Collective; every rank gets the same row, without a limit. Checks one call on fresh buffers, then times rounds of
  // calls, then, where repeated calls leave the result as it is, checks again. The row's hash is that of one rank's
  // results if they are the same on all, otherwise that of all ranks' hashes.
  BenchRow measure(std::size_t count);

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
  Expectation expectation_;
  std::uint64_t table_;  // its hash
  BenchMemory memory_[2];

  // The message aimed at.
  std::size_t count_ = 0;      // of the call
  std::size_t out_count_ = 0;  // elements of the output
  std::byte *in_ = nullptr, *out_ = nullptr;
  CombiningOrder order_;
};

}  // namespace tutti::tools
