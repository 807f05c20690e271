#include "tune/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "bench/limit.h"
#include "reduce/reduce.h"
#include "selection/choose_text.h"

namespace tutti::internal::tools {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = kKiB * kKiB;

// Pieces are multiples of a cache line, so that one of 8 bytes stands for all that fit the line of its announcement.
struct Size {
  std::size_t bytes, stream_bytes;  // of a message; of as many as are streamed
  int pieces;
};
constexpr std::array kSizes{Size{8, 32, 32},
                            Size{64, 64 * 32, 32},
                            Size{kKiB, 32 * kKiB, 32},
                            Size{4 * kKiB, 128 * kKiB, 32},
                            Size{16 * kKiB, 512 * kKiB, 32},
                            Size{64 * kKiB, 2 * kMiB, 32},
                            Size{256 * kKiB, 4 * kMiB, 16},
                            Size{kMiB, 8 * kMiB, 8},
                            Size{4 * kMiB, 16 * kMiB, 4}};
constexpr std::array<std::size_t, 7> kReduced{128, 4 * kKiB, 32 * kKiB, 256 * kKiB, kMiB, 4 * kMiB, 16 * kMiB};

std::size_t calls_for(std::size_t bytes, std::size_t most) {
  return std::clamp(4 * kMiB / (bytes + 2 * kKiB), std::size_t{3}, most);
}

// Mean microseconds of a broadcast whose root changes with every call: none can begin before the last has arrived.
double ping_pong(Communicator& pair, std::byte* data, std::size_t bytes, Algorithm algorithm, std::size_t most_calls) {
  const std::size_t calls = calls_for(bytes, most_calls) / 2 * 2 + 2;
  pair.barrier();
  const double start = now_us();
  for (std::size_t call = 0; call < calls; ++call)
    pair.broadcast(data, bytes, DType::uint8, static_cast<int>(call % 2), {.algorithm = algorithm});
  return (now_us() - start) / static_cast<double>(calls);
}

// As many digits as the noise leaves. And a larger message is not cheaper; where it seems so, it was noise.
void tidy(CostCurve& curve) {
  for (CostCurve::Point& point : curve.points) point.us = in_three_digits(point.us);
  for (std::size_t i = 1; i < curve.points.size(); ++i)
    curve.points[i].us = std::max(curve.points[i].us, curve.points[i - 1].us);
}

}  // namespace

double in_three_digits(double us) {
  if (us <= 0) return 0;
  const double unit = std::pow(10.0, std::floor(std::log10(us)) - 2);
  return std::stod(fmt::format("{:.{}f}", std::round(us / unit) * unit, unit < 1 ? -std::lround(std::log10(unit)) : 0));
}

std::string probe_table() {
  using namespace internal;
  ChoiceTable table;
  for (const Size& size : kSizes)
    table.rules.push_back({.collective = Collective::broadcast,
                           .max_bytes = size.stream_bytes,
                           .algorithm = Algorithm::chain,
                           .chunk_bytes = size.stream_bytes / static_cast<std::size_t>(size.pieces)});
  table.rules.push_back(
      {.collective = Collective::broadcast, .algorithm = Algorithm::binomial_tree, .chunk_bytes = kAnyBytes});
  return to_text(table);
}

LinkProbe::LinkProbe(Communicator& pair)
    : pair_(pair),
      memory_(pair, kSizes.back().stream_bytes, HostBuffers::own),
      one_(kSizes.size()),
      more_(kSizes.size()) {
  std::fill_n(memory_.data(), kSizes.back().stream_bytes, std::byte{1});
  round();  // warms caches and page tables
  for (auto* samples : {&one_, &more_}) samples->assign(kSizes.size(), {});
}

void LinkProbe::round() {
  constexpr std::size_t kMaxCalls = 1000;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const double us = ping_pong(pair_, memory_.data(), kSizes[i].bytes, Algorithm::binomial_tree, kMaxCalls);
    const double stream = ping_pong(pair_, memory_.data(), kSizes[i].stream_bytes, Algorithm::chain, kMaxCalls / 10);
    one_[i].push_back(us);
    more_[i].push_back((stream - us) / (kSizes[i].pieces - 1));
  }
}

LinkCost LinkProbe::result() const {
  LinkCost link;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    const double us = median(one_[i]);
    link.arrival.points.push_back({static_cast<double>(kSizes[i].bytes), us});
    link.busy.points.push_back({static_cast<double>(kSizes[i].bytes), std::clamp(median(more_[i]), us / 50, us)});
  }
  tidy(link.arrival);
  tidy(link.busy);
  return link;
}

ReduceProbe::ReduceProbe(Communicator& pair)
    : pair_(pair),
      a_(pair, kReduced.back() / 2, HostBuffers::own),
      b_(pair, kReduced.back() / 2, HostBuffers::own),
      out_(pair, kReduced.back() / 2, HostBuffers::own),
      samples_(kReduced.size()) {
  for (const BenchMemory* memory : {&a_, &b_, &out_}) std::fill_n(memory->data(), kReduced.back() / 2, std::byte{0});
}

void ReduceProbe::round() {
  const ReduceSource sources[] = {{a_.data(), 0, false}, {b_.data(), 1, false}};
  const ReduceTarget target{out_.data(), false};
  for (std::size_t i = 0; i < kReduced.size(); ++i) {
    const std::size_t calls = calls_for(kReduced[i], 1000), count = kReduced[i] / 2 / sizeof(float);
    pair_.barrier();
    const FloatEnvironment environment;
    const double start = now_us();
    for (std::size_t call = 0; call < calls; ++call) reduce({.finish = true}, sources, {&target, 1}, count);
    samples_[i].push_back((now_us() - start) / static_cast<double>(calls));
  }
}

CostCurve ReduceProbe::result() const {
  CostCurve curve;
  for (std::size_t i = 0; i < kReduced.size(); ++i)
    curve.points.push_back({static_cast<double>(kReduced[i]), median(samples_[i])});
  tidy(curve);
  return curve;
}

double sample_barrier(Communicator& world) {
  constexpr std::size_t kCalls = 300;
  world.barrier();
  const double start = now_us();
  for (std::size_t call = 0; call < kCalls; ++call) world.barrier();
  return (now_us() - start) / kCalls;
}

}  // namespace tutti::internal::tools
