// Many small all-reduces, one by one and in groups.
//
//   tutti run -n 2 group_benchmark [ELEMENTS] [CALLS] [IN_A_GROUP] [ROUNDS]
//
// Each round makes all calls in both ways, by turns. Rank 0 prints medians over the rounds, of the slowest rank, and
// whether both gave the same bits.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <vector>

#include "tutti/communicator.h"

namespace {

using Clock = std::chrono::steady_clock;

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::uint64_t hash_of(std::span<const float> values) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037u;
  for (const std::byte byte : std::as_bytes(values)) hash = (hash ^ static_cast<std::uint64_t>(byte)) * 1099511628211u;
  return hash;
}

}  // namespace

int main(int argc, char** argv) {
  const auto argument = [&](int i, std::size_t otherwise) {
    return argc > i ? std::strtoull(argv[i], nullptr, 10) : otherwise;
  };
  const std::size_t count = argument(1, 2), calls = argument(2, 10'000), together = argument(3, 100);
  const std::size_t rounds = argument(4, 25);
  auto world = tutti::Communicator::from_env();
  std::vector<float> in(count * calls), out(in.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    in[i] = 1.0f / static_cast<float>(i * 7 + static_cast<std::size_t>(world.rank()) * 13 + 3);
  const auto call = [&](std::size_t i) {
    world.all_reduce(&in[i * count], &out[i * count], count, tutti::DType::float32, tutti::Op::sum);
  };
  const auto one_by_one = [&] {
    for (std::size_t i = 0; i < calls; ++i) call(i);
  };
  const auto in_groups = [&] {
    for (std::size_t first = 0; first < calls; first += together) {
      const tutti::GroupScope group;
      for (std::size_t i = first; i < std::min(first + together, calls); ++i) call(i);
    }
  };
  std::uint64_t hashes[2] = {};
  const auto timed = [&](int way, const auto& body) {
    std::ranges::fill(out, 0.0f);
    world.barrier();
    const auto begin = Clock::now();
    body();
    double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    hashes[way] = hash_of(out);
    world.all_reduce(std::span(&seconds, 1), tutti::Op::max);
    return seconds;
  };
  std::vector<double> alone, grouped;
  for (std::size_t round = 0; round < rounds + 2; ++round) {
    const double a = timed(0, one_by_one), b = timed(1, in_groups);
    if (round < 2) continue;  // warm-up
    alone.push_back(a);
    grouped.push_back(b);
  }
  if (world.rank() != 0) return 0;
  const double a = median(alone) / static_cast<double>(calls) * 1e9,
               b = median(grouped) / static_cast<double>(calls) * 1e9;
  std::printf("%zu all-reduces of %zu bytes, %d ranks, medians of %zu rounds, slowest rank\n", calls,
              count * sizeof(float), world.size(), rounds);
  std::printf("one by one          %8.1f ns each\n", a);
  std::printf("in groups of %-5zu  %8.1f ns each: %.1f times as fast\n", together, b, a / b);
  std::printf("the same bits: %s\n", hashes[0] == hashes[1] ? "yes" : "NO");
}
