// What data-parallel training asks of the other ranks. DataParallel (data_parallel.h) answers through a Communicator.
#pragma once

#include <cstdint>
#include <span>

namespace tutti::trainer {

// Every rank makes the same calls in the same order; each call waits for all ranks. Errors of the implementation pass
// through the trainer untouched.
class GradientSync {
 public:
  virtual ~GradientSync() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  // values[i] on every rank = the sum over all ranks of values[i]: the same bits everywhere. `values` is memory of the
  // device that this rank trains on, which is done with it, and on return holds the sums.
  virtual void sum(std::span<double> values) = 0;

  // True on every rank if all ranks hold the same value, false on every rank otherwise.
  virtual bool agree(std::uint64_t value) = 0;
};

// Training alone.
class SingleRank : public GradientSync {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void sum(std::span<double>) override {}
  bool agree(std::uint64_t) override { return true; }
};

}  // namespace tutti::trainer
