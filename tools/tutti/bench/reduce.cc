#include "bench/reduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <stdexcept>

#include "bench/limit.h"
#include "bench/values.h"
#include "machine/gpu.h"
#include "machine/host.h"
#include "reduce/reference.h"
#include "schedule/layout.h"

namespace tutti::internal::tools {
namespace {

constexpr double kRoundUs = 50e3;  // a round of either takes about as long, or less
constexpr std::size_t kFewestCalls = 3, kMaxCalls = 1'000'000;

void join(int lo, int hi, std::vector<ReduceSource>& sources) {
  if (hi - lo == 1) {
    sources.emplace_back();
    return;
  }
  const int split = canonical_split(lo, hi);
  join(lo, split, sources);
  join(split, hi, sources);
  ++sources.back().joins;
}

std::vector<ReduceSource> canonical_sources(std::size_t size) {
  std::vector<ReduceSource> sources;
  join(0, static_cast<int>(size), sources);
  return sources;
}

ReduceSpec spec_of(const BenchOptions& options) {
  return {.dtype = options.dtype,
          .op = options.op,
          .finish = true,
          .leaves = static_cast<std::uint32_t>(sources_of(options))};
}

// The right results of the first `count` elements, at most a period of them: a GPU is held to the CPU's reduce(), and
// that to a scalar evaluation.
std::vector<std::byte> expected(const BenchOptions& options, std::size_t count) {
  constexpr std::size_t kAtOnce = 4096;  // elements, of 1024 sources perhaps
  const std::size_t element = size_of(options.dtype), most = std::min(count, kPeriod);
  std::vector<std::byte> right(most * element);
  std::vector<ReduceSource> sources = canonical_sources(sources_of(options));
  std::vector<std::byte> inputs(sources.size() * kAtOnce * element);
  const FloatEnvironment ieee;
  for (std::size_t first = 0; first < most; first += kAtOnce) {
    const std::size_t some = std::min(kAtOnce, most - first);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      std::byte* const input = inputs.data() + i * kAtOnce * element;
      write_input(input, first, some, options.dtype, static_cast<int>(i));
      sources[i].data = input;
    }
    const ReduceTarget target{.data = right.data() + first * element};
    (options.device == "cpu" ? reduce_reference : reduce)(spec_of(options), sources, {&target, 1}, some);
  }
  return right;
}

std::uint64_t count_wrong(ReduceSubject& subject, const std::vector<std::byte>& right, std::size_t element,
                          std::size_t count) {
  std::vector<std::byte> got(std::min(count, kPeriod) * element);
  std::uint64_t wrong = 0;
  for (std::size_t first = 0; first < count; first += kPeriod) {
    const std::size_t some = std::min(kPeriod, count - first);
    subject.read(got.data(), first, some);
    if (std::memcmp(got.data(), right.data(), some * element) == 0) continue;
    for (std::size_t at = 0; at < some * element; at += element)
      wrong += std::memcmp(got.data() + at, right.data() + at, element) != 0;
  }
  return wrong;
}

std::size_t calls_a_round(ReduceSubject& subject, const BenchOptions& options, std::size_t count) {
  if (options.iterations > 0) return static_cast<std::size_t>(options.iterations);
  const double us = std::max(subject.reduce_us(count, kFewestCalls), kRoundUs / kMaxCalls);
  return std::clamp(static_cast<std::size_t>(kRoundUs / us), kFewestCalls, kMaxCalls);
}

void print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

ReduceMemory::ReduceMemory(const BenchOptions& options, std::size_t max_count) : sources(sources_of(options)) {
  constexpr std::size_t kPage = 4096, kApart = 256;
  const std::size_t whole = max_count * size_of(options.dtype);
  stride_bytes = (whole + kPage - 1) / kPage * kPage + kApart;
  bytes = copies() + ((sources + 1) * whole + 1) / 2;
}

ReduceCall::ReduceCall(const BenchOptions& options, const ReduceMemory& memory, std::byte* at)
    : spec(spec_of(options)), sources(canonical_sources(memory.sources)), target{.data = at + memory.target()} {
  for (std::size_t i = 0; i < sources.size(); ++i) sources[i].data = at + i * memory.stride_bytes;
}

std::size_t sources_of(const BenchOptions& options) { return static_cast<std::size_t>(options.ranks.value_or(2)); }

std::size_t traffic_bytes(const ReduceRow& row, const BenchOptions& options) {
  return (sources_of(options) + 1) * row.bytes;
}

ReduceRow measure(ReduceSubject& subject, const BenchOptions& options, std::size_t count) {
  const std::size_t element = size_of(options.dtype);
  const std::vector<std::byte> right = expected(options, count);
  ReduceRow row{.bytes = count * element};
  subject.spoil(count);
  subject.reduce_us(count, 1);
  row.wrong = count_wrong(subject, right, element, count);

  const std::size_t calls = calls_a_round(subject, options, count);
  const std::size_t copied = (traffic_bytes(row, options) + 1) / 2;  // as it is read and written
  std::vector<double> reductions, copies;
  for (int round = 0; round < options.rounds; ++round) {
    reductions.push_back(subject.reduce_us(count, calls));
    if (copied > 0) copies.push_back(subject.copy_us(copied, calls));
  }
  row.us = median(reductions);
  if (copied > 0) row.limit_us = median(copies);
  row.wrong = std::max(row.wrong, count_wrong(subject, right, element, count));
  return row;
}

int run_bench_reduce(const BenchOptions& options) {
  const auto gpu = options.device == "cuda" ? std::optional(require_gpu()) : std::nullopt;
  const std::vector<std::size_t> counts = counts_to_measure(options, 1);
  mention_rounding(options, 1);
  topology::run_on(places_for(1).front());
  const std::size_t most = std::ranges::max(counts);
  const auto subject = gpu ? gpu_subject(options, *gpu, most) : host_subject(options, most);
  if (!options.json) print(reduce_head(options, gpu));
  std::uint64_t wrong = 0;
  for (const std::size_t count : counts) {
    const ReduceRow row = measure(*subject, options, count);
    wrong += row.wrong;
    print(options.json ? json_row(row, options, gpu) : table_row(row, options));
  }
  if (wrong > 0) throw std::runtime_error(fmt::format("{} elements were wrong", wrong));
  if (!options.json) print(fmt::format("# {} size{}, 0 wrong\n", counts.size(), counts.size() == 1 ? "" : "s"));
  return 0;
}

}  // namespace tutti::internal::tools
