// What every driver of a peer does alike: reads what to measure, times it as `tutti bench` does, prints it.
//
//   PROGRAM COLLECTIVE SIZE,SIZE,... [touch]      prints, from rank 0: "BYTES MICROSECONDS" a line
//
// A size counts the bytes of the whole vector, as in `tutti bench`. Microseconds are the mean of one round of calls, in
// the slowest rank. `touch`: every rank rewrites its input before each call and all meet; only the calls are timed.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace peer {

struct Library {
  int rank, size;
  std::function<void()> barrier;
  std::function<double(double)> largest;  // over all ranks, on every rank
};

// As tools/tutti/bench/limit.cc: bytes are those of all ranks.
inline std::size_t calls_to_time(double bytes, int ranks) {
  const std::size_t fewer = static_cast<std::size_t>(std::max(1, ranks / 2));
  return bytes < 64e3 ? 4000 / fewer : bytes < 4e6 ? 1000 / fewer : 60;
}

inline double now_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

inline std::vector<std::size_t> sizes(const char* list) {
  std::vector<std::size_t> all;
  for (const char* at = list; *at != '\0';) {
    char* end;
    all.push_back(std::strtoull(at, &end, 10));
    at = *end == ',' ? end + 1 : end;
  }
  return all;
}

// make(in, out, count) gives what a call of `count` floats does; the buffers are made anew for every size.
using Make = std::function<std::function<void()>(float* in, float* out, std::size_t count)>;

inline void measure(const Library& library, int argc, char** argv, const Make& make) {
  const bool touch = argc > 3 && std::strcmp(argv[3], "touch") == 0;
  for (const std::size_t bytes : sizes(argv[2])) {
    const std::size_t count = bytes / sizeof(float);
    // Aligned to pages, as the buffers of `tutti bench` are.
    const std::size_t room = (bytes + 4095) / 4096 * 4096 + 4096;
    auto* const in = static_cast<float*>(std::aligned_alloc(4096, room));
    auto* const out = static_cast<float*>(std::aligned_alloc(4096, room));
    std::fill_n(in, room / sizeof(float), 1.0f + static_cast<float>(library.rank));
    std::fill_n(out, room / sizeof(float), 0.0f);
    const std::function<void()> call = make(in, out, count);

    const auto round = [&](std::size_t calls) {
      double us = 0;
      library.barrier();
      if (!touch) {
        const double start = now_us();
        for (std::size_t i = 0; i < calls; ++i) call();
        return (now_us() - start) / static_cast<double>(calls);
      }
      for (std::size_t i = 0; i < calls; ++i) {
        std::fill_n(in, count, static_cast<float>(i % 7 + 1));
        library.barrier();
        const double start = now_us();
        call();
        us += now_us() - start;
      }
      return us / static_cast<double>(calls);
    };
    // No longer than a tenth of a second, by what a trial takes in the slowest rank; or about as long as PEER_ROUND_MS.
    const char* const asked = std::getenv("PEER_ROUND_MS");
    const double round_us = asked != nullptr ? 1e3 * std::atof(asked) : 1e5;
    const std::size_t most =
        asked != nullptr ? 100'000'000 : calls_to_time(static_cast<double>(bytes) * library.size, library.size);
    round(3);
    std::size_t trial = 3;
    double took = library.largest(round(trial));
    while (asked != nullptr && took * static_cast<double>(trial) < round_us / 10 && trial < most)
      took = library.largest(round(trial *= 8));
    const std::size_t calls = std::clamp<std::size_t>(static_cast<std::size_t>(round_us / took), 3, most);
    round(calls);  // warms caches and page tables
    const double us = library.largest(round(calls));
    if (library.rank == 0) std::printf("%zu %.4f\n", bytes, us), std::fflush(stdout);
    std::free(in);
    std::free(out);
  }
}

}  // namespace peer
