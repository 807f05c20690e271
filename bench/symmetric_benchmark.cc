// The same calls with ordinary, symmetric (Communicator::allocate) and adopted (Communicator::adopt) buffers, by turns.
// Where a process's pages lie can change a time more than the kind of buffer does. Here all three kinds run in the same
// processes.
//
//   tutti run -n 4 symmetric_benchmark [ROUNDS] [MOST_BYTES] [COLLECTIVE …]
//
// Messages of float32, from 8 bytes to 16 MiB unless said; all_gather and reduce_scatter from the size at which each
// rank's row has an element. Rank 0 prints, for each size, microseconds of the slowest rank, medians over the rounds
// (25 unless said); and the medians of the rounds' own ratios, with their quartiles.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/communicator.h"

namespace {

using Clock = std::chrono::steady_clock;
using tutti::Communicator;
using tutti::DType;

constexpr std::size_t kPage = 4096;
constexpr double kRoundUs = 4000;  // about, of one kind of buffers
constexpr std::array<std::string_view, 4> kCollectives{"all_reduce", "reduce_scatter", "all_gather", "broadcast"};

struct Buffers {
  std::byte *in, *out;
};

double quantile(std::vector<double> values, double at) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(at * static_cast<double>(values.size() - 1) + 0.5)];
}

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
std::unique_ptr<void, Free> pages(std::size_t bytes) {
  std::unique_ptr<void, Free> memory(std::aligned_alloc(kPage, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

// `bytes` are those of the whole message, as `tutti bench` has them.
void call(Communicator& world, std::string_view collective, const Buffers& at, std::size_t bytes) {
  const std::size_t count = bytes / sizeof(float), row = count / static_cast<std::size_t>(world.size());
  if (collective == "all_reduce") return world.all_reduce(at.in, at.out, count, DType::float32, tutti::Op::sum);
  if (collective == "reduce_scatter") return world.reduce_scatter(at.in, at.out, row, DType::float32, tutti::Op::sum);
  if (collective == "all_gather") return world.all_gather(at.in, at.out, row, DType::float32);
  world.broadcast(at.out, count, DType::float32, 0);
}

// Of one call, of the slowest rank.
double us_of(Communicator& world, std::string_view collective, const Buffers& at, std::size_t bytes, int calls) {
  call(world, collective, at, bytes);
  world.barrier();
  const auto begun = Clock::now();
  for (int i = 0; i < calls; ++i) call(world, collective, at, bytes);
  double us = std::chrono::duration<double, std::micro>(Clock::now() - begun).count() / calls;
  world.all_reduce(&us, &us, 1, DType::float64, tutti::Op::max);
  return us;
}

void print_ratio(std::span<const double> above, std::span<const double> below) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < above.size(); ++i) ratios.push_back(above[i] / below[i]);
  std::printf("  %6.2f [%.2f, %.2f]", quantile(ratios, 0.5), quantile(ratios, 0.25), quantile(ratios, 0.75));
}

void measure(Communicator& world, std::string_view collective, std::span<const Buffers, 3> kinds, std::size_t bytes,
             int rounds) {
  const double once = std::max(us_of(world, collective, kinds[0], bytes, 3), 0.01);
  const int calls = static_cast<int>(std::clamp(kRoundUs / once, 3.0, 20'000.0));
  std::array<std::vector<double>, 3> us;
  for (int round = 0; round < rounds; ++round)
    for (std::size_t turn = 0; turn < kinds.size(); ++turn) {
      const std::size_t kind = (turn + static_cast<std::size_t>(round)) % kinds.size();
      us[kind].push_back(us_of(world, collective, kinds[kind], bytes, calls));
    }
  if (world.rank() != 0) return;
  std::printf("%-14s %10zu", std::string(collective).c_str(), bytes);
  for (const auto& each : us) std::printf("  %10.3f", quantile(each, 0.5));
  print_ratio(us[1], us[0]);
  print_ratio(us[2], us[1]);
  std::printf("\n");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 25;
  const std::size_t most = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 16 << 20;
  std::vector<std::string_view> collectives(argv + std::min(argc, 3), argv + argc);
  if (collectives.empty()) collectives.assign(kCollectives.begin(), kCollectives.end());
  for (const std::string_view collective : collectives)
    if (rounds < 1 || most < 8 || std::ranges::find(kCollectives, collective) == kCollectives.end()) {
      std::fprintf(stderr,
                   "symmetric_benchmark [ROUNDS] [MOST_BYTES] [COLLECTIVE …]: 25, 16777216, and of all_reduce, "
                   "reduce_scatter, all_gather, broadcast all, unless said\n");
      return 2;
    }
  auto world = Communicator::from_env();
  const std::size_t room = (most + kPage - 1) / kPage * kPage;
  const auto own = pages(2 * room), given = pages(2 * room);
  const tutti::Memory symmetric = world.allocate(2 * room);
  const tutti::Registration adopted = world.adopt(given.get(), 2 * room);
  std::array<Buffers, 3> kinds;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    void* const first = kind == 0 ? own.get() : kind == 1 ? symmetric.data() : given.get();
    kinds[kind] = {static_cast<std::byte*>(first), static_cast<std::byte*>(first) + room};
    std::fill_n(kinds[kind].in, 2 * room, std::byte{});
  }
  if (world.rank() == 0)
    std::printf("# %d ranks, %d rounds; us: own, symmetric, adopted; ratios: symmetric to own, adopted to symmetric\n",
                world.size(), rounds);
  for (const std::string_view collective : collectives)
    for (std::size_t bytes = 8; bytes <= most; bytes *= bytes < 64 ? 8 : 4)
      if (collective == "all_reduce" || collective == "broadcast" ||
          bytes / sizeof(float) >= static_cast<std::size_t>(world.size()))
        measure(world, collective, kinds, bytes, rounds);
} catch (const std::exception& error) {
  std::fprintf(stderr, "symmetric_benchmark: %s\n", error.what());
  return 1;
}
