// cuda::reduce() on a GPU: the bits of tutti::internal::reduce(), and nothing else in its memory changed. Skipped where
// find_devices() finds none, and says why. On a fake one: all between the call and the kernels.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "brief.h"
#include "cuda/cases.h"
#include "cuda/check.h"
#include "cuda/device.h"
#include "cuda/reduce.h"
#include "types/kinds.h"

namespace tutti::internal::cuda_test {
namespace {

using namespace reduce_test;

// Device memory that mirrors the buffers of one call: each as far from a multiple of 64 as the host's.
class Mirror {
 public:
  // A stream that is ordered by nothing but what is put on it.
  Mirror() { cuda::check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Mirror() {
    cudaStreamDestroy(stream_);
    cudaFree(device_);
    cudaFreeHost(pinned_);
  }
  Mirror(const Mirror&) = delete;
  Mirror& operator=(const Mirror&) = delete;

  void reduce(const ReduceSpec& spec, std::span<const ReduceSource> sources, std::span<const ReduceTarget> targets,
              std::size_t count) {
    places_.clear();
    end_ = 0;
    std::vector<ReduceSource> there(sources.begin(), sources.end());
    std::vector<ReduceTarget> to(targets.begin(), targets.end());
    for (ReduceSource& each : there) place(each.data, count * bytes_of(spec.dtype, each.partial));
    for (ReduceTarget& each : to) place(each.data, count * bytes_of(spec.dtype, each.partial));
    std::vector<std::byte> before(end_ + 64, std::byte{0xa5});
    for (const ReduceSource& each : sources) {
      if (count != 0) std::memcpy(&before[places_[each.data]], each.data, count * bytes_of(spec.dtype, each.partial));
    }
    make_room(before.size());
    std::ranges::copy(before, pinned_);
    for (ReduceSource& each : there) each.data = device_ + places_[each.data];
    for (ReduceTarget& each : to) each.data = device_ + places_[each.data];
    cuda::check(cudaMemcpyAsync(device_, pinned_, before.size(), cudaMemcpyHostToDevice, stream_));
    cuda::reduce(spec, there, to, count, stream_);
    cuda::check(cudaMemcpyAsync(pinned_, device_, before.size(), cudaMemcpyDeviceToHost, stream_));
    cuda::check(cudaStreamSynchronize(stream_));
    const std::span after(pinned_, before.size());
    for (const ReduceTarget& each : targets) {
      const std::size_t at = places_[each.data], bytes = count * bytes_of(spec.dtype, each.partial);
      std::copy_n(after.begin() + static_cast<std::ptrdiff_t>(at), bytes, each.data);
      std::copy_n(after.begin() + static_cast<std::ptrdiff_t>(at), bytes,
                  before.begin() + static_cast<std::ptrdiff_t>(at));
    }
    ASSERT_TRUE(std::ranges::equal(before, after)) << "something else has changed";
  }

 private:
  void make_room(std::size_t bytes) {
    if (bytes <= bytes_) return;
    cuda::check(cudaFree(std::exchange(device_, nullptr)));
    cuda::check(cudaFreeHost(std::exchange(pinned_, nullptr)));
    cuda::check(cudaMalloc(reinterpret_cast<void**>(&device_), bytes));
    cuda::check(cudaMallocHost(reinterpret_cast<void**>(&pinned_), bytes));
    bytes_ = bytes;
  }
  void place(const std::byte* host, std::size_t bytes) {
    if (places_.contains(host)) return;
    const std::size_t at = (end_ + 127) / 64 * 64 + reinterpret_cast<std::uintptr_t>(host) % 64;
    places_[host] = at;
    end_ = at + bytes;
  }

  std::size_t bytes_ = 0;
  std::byte *device_ = nullptr, *pinned_ = nullptr;
  cudaStream_t stream_ = nullptr;
  std::map<const std::byte*, std::size_t> places_;
  std::size_t end_ = 0;
};

class Gpu : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    const cuda::Devices found = cuda::find_devices();
    if (found.usable.empty()) GTEST_SKIP() << found.why_none();
    cuda::check(cudaSetDevice(found.usable[0].index));
    multiprocessors_ = static_cast<std::size_t>(found.usable[0].multiprocessors);
    is_fast_ = multiprocessors_ > 8;
    mirror_ = std::make_unique<Mirror>();
  }
  std::mt19937_64 random_{20261124};
  std::unique_ptr<Mirror> mirror_;
  std::size_t multiprocessors_ = 0;
  bool is_fast_ = true;  // not where the CPU is the GPU
  Runner on_gpu_ = [&](const auto& spec, auto sources, auto targets, std::size_t count) {
    mirror_->reduce(spec, sources, targets, count);
  };
};
INSTANTIATE_TEST_SUITE_P(Types, Gpu, testing::ValuesIn(all_dtypes().begin(), all_dtypes().end()),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST_P(Gpu, EveryOperatorRanksAndAlignmentGivesTheBitsOfTheCpu) {
  const std::size_t most_count = is_fast_ ? 2000 : kBrief ? 60 : 100;
  for_each_case(GetParam(), most_count, random_, [&](const Case& each, Kind kind) {
    if (!HasFatalFailure()) expect_same_bits(each, on_gpu_, kind, random_);
  });
}

// More blocks than a GPU runs at once.
TEST_P(Gpu, LargeCallsGiveTheBitsOfTheCpu) {
  const std::size_t count = multiprocessors_ * (std::size_t{128} << 10) / size_of(GetParam()) + 5;
  for (const int n : is_fast_ ? std::vector{1, 2, 3, 8, 9} : kBrief ? std::vector{2, 3} : std::vector{2, 3, 9}) {
    for (const Op op : {Op::sum, Op::max, Op::avg}) {
      if (!can_combine(GetParam(), op)) continue;
      Case each{{GetParam(), op, true, static_cast<std::uint32_t>(n)}, canonical_joins(n), {}, {{1}, {1}}, count};
      each.sources.resize(static_cast<std::size_t>(n), {1});
      expect_same_bits(each, on_gpu_, n % 2 == 0 ? Kind::wild : Kind::tame, random_);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(Gpu, TheDeepestAndTheWidestTreeGiveTheBitsOfTheCpu) {
  Case each{{GetParam(), Op::sum, true, 7}, std::vector<std::uint8_t>(33), {}, {}, is_fast_ ? 3001u : 301u};
  each.joins.back() = 32;  // leaning: 32 wait
  each.sources.resize(33);
  each.targets.resize(64);
  expect_same_bits(each, on_gpu_, Kind::tame, random_);
  each.joins = random_joins(1024, random_);
  each.sources.resize(1024);
  expect_same_bits(each, on_gpu_, Kind::tame, random_);
}

class GpuShort : public Gpu {};
INSTANTIATE_TEST_SUITE_P(Types, GpuShort,
                         testing::Values(DType::float16, DType::bfloat16, DType::int8, DType::uint8, DType::boolean,
                                         DType::float8_e4m3, DType::float8_e5m2),
                         [](const auto& each) { return std::string(to_string(each.param)); });

// Each element beside each, for types of 8 bits; beside 180 others for 16 (20 on a slow device).
TEST_P(GpuShort, EveryPairGivesTheBitsOfTheCpu) {
  const std::size_t size = size_of(GetParam());
  std::vector<std::byte> a(0x10000 * size), b(a.size()), out(a.size()), expected(a.size());
  for (std::uint32_t i = 0; i < 0x10000; ++i) std::memcpy(&a[i * size], &i, size);
  const ReduceSource sources[] = {{a.data()}, {b.data(), 1}};
  const ReduceTarget target{out.data()}, expected_target{expected.data()};
  const std::uint32_t step = size == 1 ? 0x100 : is_fast_ ? 359 : kBrief ? 9001 : 3217;
  for (std::uint32_t second = 0; second < 0x10000; second += step) {
    for (std::uint32_t i = 0; i < 0x10000; ++i) {
      const std::uint32_t value = size == 1 ? i >> 8 : second;
      std::memcpy(&b[i * size], &value, size);
    }
    for (const Op op : ops_of(GetParam())) {
      const ReduceSpec spec{GetParam(), op, true, 3};
      reduce(spec, sources, {&expected_target, 1}, 0x10000);
      mirror_->reduce(spec, sources, {&target, 1}, 0x10000);
      ASSERT_EQ(out, expected) << to_string(op) << " with " << std::hex << second;
    }
    if (size == 1) return;
  }
}

}  // namespace
}  // namespace tutti::internal::cuda_test
