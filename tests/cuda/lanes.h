// The kernels' threads on the CPU, one after the other in any order, all that they touch being checked.
#pragma once

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cuda/kernels.h"
#include "cuda/plan.h"
#include "cuda/thread.h"

namespace tutti::internal::cuda_test {

using cuda::Cell;

// Where the memory is that a thread touches, and whether it may. What to do about it if not is its own matter.
class Memory {
 public:
  virtual const std::byte* load(const std::byte* from, std::size_t bytes) = 0;
  virtual std::byte* store(std::byte* to, std::size_t bytes) = 0;

 protected:
  ~Memory() = default;
};

// Sources and targets, [first, last) each: what the threads of one launch may touch.
class Watched final : public Memory {
 public:
  struct Range {
    const std::byte* first;
    const std::byte* last;
  };
  std::vector<Range> sources, targets;
  std::vector<std::vector<int>> stores;  // of each target: how often each byte was stored

  const std::byte* load(const std::byte* from, std::size_t bytes) override;
  std::byte* store(std::byte* to, std::size_t bytes) override;
  // The first thing that was wrong; each byte of each target must have been stored once.
  std::string wrong() const;

 private:
  void check_aligned(const char* what, const std::byte* at, std::size_t bytes);
  void complain(const std::string& what);
  std::string first_wrong_;
};

// One thread, as src/cuda/thread.h wants it.
class Lane {
 public:
  Lane(std::size_t index, std::size_t threads, Memory& memory, std::vector<Cell>& waiting)
      : index_(index), threads_(threads), memory_(memory), waiting_(waiting) {}
  std::size_t index() const { return index_; }
  std::size_t threads() const { return threads_; }
  template <int kBytes>
  Cell load(const std::byte* from) const {
    Cell cell{};
    std::memcpy(&cell, memory_.load(from, kBytes), kBytes);
    return cell;
  }
  template <int kBytes>
  void store(std::byte* to, const Cell& cell) const {
    std::memcpy(memory_.store(to, kBytes), &cell, kBytes);
  }
  Cell& waiting(int i) const { return waiting_.at(static_cast<std::size_t>(i)); }

 private:
  std::size_t index_, threads_;
  Memory& memory_;
  std::vector<Cell>& waiting_;
};

// A launch. `threads` are numbered in the order in which they run.
struct Launch {
  cuda::KernelName name;
  const cuda::FewTask* few = nullptr;  // or
  const cuda::ManyTask* many = nullptr;
  std::vector<std::size_t> threads;
  std::size_t waiting_cells = 0;
  Memory* memory = nullptr;

  template <class F>
  void operator()() const {
    for (const std::size_t thread : threads) {
      std::vector<Cell> waiting(waiting_cells);
      const Lane lane(thread, threads.size(), *memory, waiting);
      switch (name.shape) {
        case cuda::Shape::pair: cuda::run_group<F, 2>(*few, lane); break;
        case cuda::Shape::group: cuda::run_group<F, cuda::kBatch>(*few, lane); break;
        case cuda::Shape::tree: cuda::run_groups<F>(*many, lane); break;
      }
    }
  }
};

// name.dtype must be of the family, as in cuda/kernels.h.
void run_floats(const Launch& launch);
void run_halves(const Launch& launch);
void run_float8s(const Launch& launch);
void run_integers(const Launch& launch);

// As cuda::reduce(), on some threads.
void reduce_on_lanes(const ReduceSpec& spec, std::span<const ReduceSource> sources,
                     std::span<const ReduceTarget> targets, std::size_t count, std::mt19937_64& random);

}  // namespace tutti::internal::cuda_test
