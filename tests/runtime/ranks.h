// Ranks for tests of the communicator: threads of this process, and what they should compute.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/expected.h"
#include "tutti/communicator.h"

namespace tutti::internal {

inline const std::vector<std::string> kTransports{"inproc", "shm", "tcp"};

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

// "rank 1: this and that, during all_reduce #2 (…)": without the rank that says so, and what it was doing.
inline std::string reason_of(const Error& error) {
  const std::string text = error.what();
  const std::size_t from = text.find(": ") + 2;
  return text.substr(from, text.find(", during ") - from);
}

}  // namespace tutti::internal
