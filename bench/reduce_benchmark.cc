// The CPU reduction beside its limits, in one run: memcpy, a plain read, and the plainest loop that adds two vectors.
// Bytes per second count every byte read and every byte written, so all rows compare.
//   reduce/OP/DTYPE/SOURCESxTARGETS/BYTES of one source
#include <benchmark/benchmark.h>

#include <cstring>
#include <new>
#include <string>
#include <vector>

#include "reduce/reduce.h"

namespace {

using tutti::DType;
using tutti::Op;

// `parts` page-aligned arrays that do not collide in the first-level cache.
class Arrays {
 public:
  Arrays(std::size_t parts, std::size_t bytes) : stride_((bytes + kPage - 1) / kPage * kPage + 256) {
    storage_ = static_cast<std::byte*>(::operator new (parts* stride_, std::align_val_t{kPage}));
    std::memset(storage_, 0x3f, parts * stride_);  // an ordinary number in every floating-point type
  }
  ~Arrays() { ::operator delete (storage_, std::align_val_t{kPage}); }
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  std::byte* operator[](std::size_t part) const { return storage_ + part * stride_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t stride_;
  std::byte* storage_;
};

void count_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * static_cast<std::int64_t>(bytes));
}

void copy(benchmark::State& state, std::size_t bytes) {
  const Arrays arrays(2, bytes);
  for (auto _ : state) {
    std::memcpy(arrays[1], arrays[0], bytes);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2 * bytes);
}

void read(benchmark::State& state, std::size_t bytes) {
  const Arrays arrays(1, bytes);
  for (auto _ : state) {
    std::uint64_t sums[16] = {};
    const auto* const words = reinterpret_cast<const std::uint64_t*>(arrays[0]);
    for (std::size_t i = 0; i + 16 <= bytes / 8; i += 16) {
      for (std::size_t k = 0; k < 16; ++k) sums[k] ^= words[i + k];
    }
    benchmark::DoNotOptimize(sums);
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes);
}

void plain_add(benchmark::State& state, std::size_t bytes) {
  const Arrays arrays(4, bytes);
  for (auto _ : state) {
    const auto* __restrict a = reinterpret_cast<const float*>(arrays[0]);
    const auto* __restrict b = reinterpret_cast<const float*>(arrays[1]);
    auto* __restrict x = reinterpret_cast<float*>(arrays[2]);
    auto* __restrict y = reinterpret_cast<float*>(arrays[3]);
    for (std::size_t i = 0; i < bytes / sizeof(float); ++i) x[i] = y[i] = a[i] + b[i];
    benchmark::ClobberMemory();
  }
  count_bytes(state, 4 * bytes);
}

void reduce(benchmark::State& state, DType dtype, Op op, int n, int m, std::size_t bytes) {
  const auto sources_count = static_cast<std::size_t>(n), targets_count = static_cast<std::size_t>(m);
  const Arrays arrays(sources_count + targets_count, bytes);
  std::vector<tutti::internal::ReduceSource> sources;
  std::vector<tutti::internal::ReduceTarget> targets;
  for (std::size_t s = 0; s < sources_count; ++s) {
    std::uint8_t joins = 0;
    for (std::size_t i = s + 1; i % 2 == 0; i /= 2) ++joins;  // balanced, as n is a power of two
    sources.push_back({arrays[s], joins});
  }
  for (std::size_t t = 0; t < targets_count; ++t) targets.push_back({arrays[sources_count + t]});
  const bool stream = bytes * (sources_count + targets_count) > (32u << 20);
  const tutti::internal::ReduceSpec spec{dtype, op, true, static_cast<std::uint32_t>(n), stream};
  for (auto _ : state) {
    tutti::internal::reduce(spec, sources, targets, bytes / tutti::size_of(dtype));
    benchmark::ClobberMemory();
  }
  count_bytes(state, bytes * (sources_count + targets_count));
}

void register_all() {
  const auto name = [](const std::string& what, std::size_t bytes) { return what + "/" + std::to_string(bytes); };
  for (const std::size_t bytes : {8u, 4096u, 65536u, 1048576u, 33554432u}) {
    benchmark::RegisterBenchmark(name("memcpy", bytes).c_str(), copy, bytes);
    benchmark::RegisterBenchmark(name("read", bytes).c_str(), read, bytes);
    benchmark::RegisterBenchmark(name("plain_add/2x2", bytes).c_str(), plain_add, bytes);
    const auto add = [&](DType dtype, Op op, int n, int m) {
      const std::string what = "reduce/" + std::string(to_string(op)) + "/" + std::string(to_string(dtype)) + "/" +
                               std::to_string(n) + "x" + std::to_string(m);
      benchmark::RegisterBenchmark(name(what, bytes).c_str(), reduce, dtype, op, n, m, bytes);
    };
    for (const DType dtype : {DType::float32, DType::bfloat16, DType::float16}) {
      for (const int n : {1, 2, 4, 8, 16}) add(dtype, Op::sum, n, 1);
      add(dtype, Op::sum, 2, 2);
    }
    for (const DType dtype : {DType::float64, DType::int8, DType::int32, DType::int64}) add(dtype, Op::sum, 2, 1);
    for (const Op op : {Op::avg, Op::prod, Op::max}) {
      for (const DType dtype : {DType::float32, DType::bfloat16, DType::int8, DType::int64}) add(dtype, op, 2, 1);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  register_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
