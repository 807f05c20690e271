// Ranks for tests of the communicator: threads of this process, and what they should compute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "reduce/reference.h"
#include "schedule/builder.h"
#include "tutti/communicator.h"

namespace tutti {

inline const std::vector<std::string> kTransports{"inproc", "shm", "tcp"};

// Random bits, with infinities and NaNs left in: rank r's input of `count` elements.
inline std::vector<std::byte> random_input(int rank, std::size_t count, DType dtype) {
  std::mt19937_64 random(1000003u * static_cast<unsigned>(rank) + static_cast<unsigned>(dtype));
  std::vector<std::byte> bytes(count * size_of(dtype));
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    const std::uint64_t bits = random();
    std::memcpy(&bytes[i], &bits, std::min<std::size_t>(8, bytes.size() - i));
  }
  return bytes;
}

// The canonical reduction of all ranks' random inputs, one element at a time.
inline std::vector<std::byte> expected_reduction(int ranks, std::size_t count, DType dtype, Op op) {
  std::vector<std::vector<std::byte>> inputs;
  std::vector<int> bounds(ranks + 1);
  std::iota(bounds.begin(), bounds.end(), 0);
  const auto joins = canonical_joins(bounds);
  std::vector<ReduceSource> sources(ranks);
  for (int r = 0; r < ranks; ++r) {
    inputs.push_back(random_input(r, count, dtype));
    sources[r] = {inputs.back().data(), joins[r], false};
  }
  std::vector<std::byte> result(count * size_of(dtype));
  const ReduceTarget target{result.data(), false};
  const FloatEnvironment environment;
  if (count > 0)
    reduce_reference({.dtype = dtype, .op = op, .finish = true, .leaves = static_cast<std::uint32_t>(ranks)}, sources,
                     {&target, 1}, count);
  return result;
}

// What body(communicator) threw on each rank of a job of threads, one for each of these settings; empty where it
// returned.
inline std::vector<std::optional<Error>> outcomes(std::vector<Settings> by_rank,
                                                  const std::function<void(Communicator&)>& body) {
  const auto store = make_memory_store();
  std::vector<std::optional<Error>> thrown(by_rank.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < by_rank.size(); ++r)
    threads.emplace_back([&, r] {
      Settings& settings = by_rank[r];
      settings.rank = static_cast<int>(r);
      settings.size = static_cast<int>(by_rank.size());
      try {
        Communicator world = Communicator::join(settings, *store);
        body(world);
      } catch (const Error& error) {
        thrown[r] = error;
      }
    });
  for (std::thread& thread : threads) thread.join();
  return thrown;
}
inline std::vector<std::optional<Error>> outcomes(int ranks, const Settings& settings,
                                                  const std::function<void(Communicator&)>& body) {
  return outcomes(std::vector<Settings>(ranks, settings), body);
}

}  // namespace tutti
