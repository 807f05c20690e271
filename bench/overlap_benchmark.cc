// What a program pays for a started all-reduce that a thread of the library completes while the program computes.
//
//   TUTTI_PROGRESS=thread tutti run -n 2 overlap_benchmark [BYTES] [COMPUTE_MS] [ROUNDS]
//
// Each round measures, one after the other: the computing alone; a blocking all-reduce (the time of its copies); and
// the computing behind a started all-reduce. Rank 0 prints medians over the rounds, each of the slowest rank.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "tutti/communicator.h"

namespace {

using Clock = std::chrono::steady_clock;
double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Touches no memory: what it loses, it loses to the processor alone.
std::uint64_t compute(std::uint64_t steps) {
  std::uint64_t x = 88172645463325252u;
  for (; steps > 0; --steps) {
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
  }
  return x;
}

std::uint64_t steps_for(double milliseconds) {
  constexpr std::uint64_t kSteps = 20'000'000;
  double best = 1e9;
  for (int i = 0; i < 5; ++i) {
    const auto begin = Clock::now();
    volatile std::uint64_t sink = compute(kSteps);
    static_cast<void>(sink);
    best = std::min(best, milliseconds_since(begin));
  }
  return static_cast<std::uint64_t>(static_cast<double>(kSteps) * milliseconds / best);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 16 << 20;
  const double compute_ms = argc > 2 ? std::atof(argv[2]) : 20;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 25;
  auto world = tutti::Communicator::from_env();
  const std::size_t count = std::max<std::size_t>(bytes / sizeof(float), 1);
  const tutti::Memory in = world.allocate(count * sizeof(float)), out = world.allocate(count * sizeof(float));
  std::ranges::fill(in.as<float>(), 1.0f);
  std::uint64_t steps = steps_for(compute_ms);
  world.all_reduce(std::span(&steps, 1), tutti::Op::max);

  enum { alone, blocking, behind, wait, kinds };
  std::array<std::vector<double>, kinds> times;
  int done = 0;
  for (int round = -3; round < rounds; ++round) {
    std::array<double, kinds> took{};
    const auto slowest = [&](int kind, Clock::time_point begin) { took[kind] = milliseconds_since(begin); };
    world.barrier();
    auto begin = Clock::now();
    volatile std::uint64_t sink = compute(steps);
    slowest(alone, begin);
    world.barrier();
    begin = Clock::now();
    world.all_reduce(in.data(), out.data(), count, tutti::DType::float32, tutti::Op::sum);
    slowest(blocking, begin);
    world.barrier();
    begin = Clock::now();
    auto work = world.start_all_reduce(in.data(), out.data(), count, tutti::DType::float32, tutti::Op::sum);
    sink = compute(steps);
    slowest(behind, begin);
    std::int32_t is_done = work.wait_for(std::chrono::milliseconds(0));
    work.wait();
    slowest(wait, begin);
    static_cast<void>(sink);
    world.all_reduce(std::span<double>(took), tutti::Op::max);
    world.all_reduce(std::span(&is_done, 1), tutti::Op::min);
    if (round < 0) continue;  // warm-up
    for (int kind = 0; kind < kinds; ++kind) times[kind].push_back(took[kind]);
    done += is_done;
  }
  if (world.rank() != 0) return 0;
  std::array<double, kinds> at{};
  for (int kind = 0; kind < kinds; ++kind) at[kind] = median(times[kind]);
  std::printf("%zu bytes, %d ranks, medians of %d rounds, slowest rank\n", count * sizeof(float), world.size(), rounds);
  std::printf("computing alone              %8.3f ms\n", at[alone]);
  std::printf("all-reduce alone             %8.3f ms\n", at[blocking]);
  std::printf("computing behind a started   %8.3f ms: %.3f ms longer, %.2f times the all-reduce alone\n", at[behind],
              at[behind] - at[alone], (at[behind] - at[alone]) / at[blocking]);
  std::printf("until the all-reduce is over %8.3f ms\n", at[wait]);
  std::printf("found done after computing   %d of %d rounds\n", done, rounds);
}
