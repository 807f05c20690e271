// What the address of a fake kernel leads to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cuda/lanes.h"

namespace tutti::internal::fake {

// A launch's threads, numbered in the order in which they run, and what each has of shared memory.
struct Grid {
  std::vector<std::size_t> threads;
  std::size_t shared_bytes_each;
};

// Of one parameter, a copy of which it is given.
struct Kernel {
  static constexpr std::uint64_t kMark = 0x6b65726e656c6f66;  // what is launched must be one of these

  std::uint64_t mark = kMark;
  std::size_t parameter_bytes = 0;
  std::function<void(const void* parameter, const Grid& grid, cuda_test::Memory& memory)> run;
};

}  // namespace tutti::internal::fake
