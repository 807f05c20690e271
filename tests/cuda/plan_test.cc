#include "cuda/plan.h"

#include <gtest/gtest.h>

#include "cuda/device.h"
#include "cuda/reduce.h"
#include "reduce/inputs.h"
#include "tutti/error.h"

namespace tutti::internal::cuda {
namespace {

struct Data {
  alignas(16) std::byte bytes[64];
};

std::vector<ReduceSource> sources_at(std::byte* data, int n) {
  std::vector<ReduceSource> sources;
  for (const std::uint8_t joins : reduce_test::canonical_joins(n)) sources.push_back({data, joins});
  return sources;
}

// Whether it throws that code, and says that word.
testing::AssertionResult refuses(ErrorCode code, const std::string& word, const ReduceSpec& spec,
                                 const std::vector<ReduceSource>& sources, const std::vector<ReduceTarget>& targets) {
  try {
    for (const Call& call : calls_of(spec, sources, targets, 4)) Plan{call};
    return testing::AssertionFailure() << "is not refused";
  } catch (const Error& error) {
    if (error.code == code && std::string(error.what()).find(word) != std::string::npos)
      return testing::AssertionSuccess();
    return testing::AssertionFailure() << to_string(error.code) << ": " << error.what();
  }
}

TEST(CudaPlan, WhatTheCpuRefusesIsRefused) {
  Data data;
  const ReduceTarget target{data.bytes};
  for (const std::vector<std::uint8_t>& joins :
       {std::vector<std::uint8_t>{}, {1}, {0, 0}, {0, 2}, {0, 1, 0}, {0, 1, 0, 1}}) {
    std::vector<ReduceSource> sources;
    for (const std::uint8_t j : joins) sources.push_back({data.bytes, j});
    for (const bool finish : {false, true})
      EXPECT_TRUE(
          refuses(ErrorCode::invalid_argument, "the tree over", {DType::float32, Op::sum, finish}, sources, {target}));
  }
  EXPECT_TRUE(refuses(ErrorCode::invalid_argument, "0 leaves", {DType::float32, Op::avg, true, 0},
                      sources_at(data.bytes, 2), {target}));
}

TEST(CudaPlan, LimitsAreSaid) {
  Data data;
  EXPECT_TRUE(refuses(ErrorCode::unsupported, "1025 sources", {}, sources_at(data.bytes, 1025), {{data.bytes}}));
  EXPECT_TRUE(refuses(ErrorCode::unsupported, "65 targets", {}, sources_at(data.bytes, 2),
                      std::vector<ReduceTarget>(65, {data.bytes})));
}

TEST(CudaPlan, WhatIsNotAlignedToItsElementsIsRefused) {
  Data data;
  EXPECT_TRUE(refuses(ErrorCode::invalid_argument, "source 0", {}, sources_at(data.bytes + 2, 2), {{data.bytes}}));
  EXPECT_TRUE(refuses(ErrorCode::invalid_argument, "target 1", {DType::float16}, sources_at(data.bytes + 2, 2),
                      {{data.bytes + 2}, {data.bytes + 2, true}}));
}

KernelName kernel_of(const ReduceSpec& spec, const std::vector<ReduceSource>& sources,
                     const std::vector<ReduceTarget>& targets) {
  return Plan(calls_of(spec, sources, targets, 4).call[0]).kernel();
}

TEST(CudaPlan, EachCallHasItsKernel) {
  Data data;
  const std::vector<ReduceTarget> one{{data.bytes}}, nine(9, one[0]), partial{{data.bytes, true}};
  const auto sources = [&](int n) { return sources_at(data.bytes, n); };
  EXPECT_EQ(kernel_of({}, sources(2), one).shape, Shape::pair);
  EXPECT_EQ(kernel_of({}, sources(3), one).shape, Shape::group);
  EXPECT_EQ(kernel_of({}, sources(8), one).shape, Shape::group);
  EXPECT_EQ(kernel_of({}, sources(9), one).shape, Shape::tree);
  EXPECT_EQ(kernel_of({}, sources(2), nine).shape, Shape::tree);
  EXPECT_EQ(kernel_of({DType::float32, Op::avg, false}, sources(2), one).op, Op::sum);
  EXPECT_TRUE(kernel_of({DType::bfloat16}, sources(2), partial).mixed);
  EXPECT_FALSE(kernel_of({DType::float32}, sources(2), partial).mixed);
  auto all_partial = sources(2);
  for (ReduceSource& each : all_partial) each.partial = true;
  EXPECT_EQ(kernel_of({DType::bfloat16}, all_partial, partial).dtype, DType::float32);
  EXPECT_EQ(kernel_of({DType::int64}, sources(1), one).dtype, DType::uint8) << "copied as bytes";
  EXPECT_EQ(calls_of({DType::float16}, sources(1), std::vector{one[0], partial[0]}, 4).size, 2u);
  EXPECT_EQ(calls_of({}, sources(2), one, 0).size, 0u);
  EXPECT_EQ(calls_of({}, sources(2), {}, 4).size, 0u);
}

TEST(CudaDevices, AreThereOrSayWhyNot) {
  const Devices found = find_devices();
  if (found.usable.empty()) {
    EXPECT_GT(found.why_none().size(), 20u);
    Data data{};
    const ReduceTarget target{data.bytes};
    try {
      reduce({}, sources_at(data.bytes, 2), {&target, 1}, 4, nullptr);
      FAIL() << "there is no GPU, but it was reduced on one";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(found.reasons[0].substr(0, 20)), std::string::npos) << error.what();
    }
    RecordProperty("why", found.why_none());
  }
  for (const Device& each : found.usable) EXPECT_GT(each.multiprocessors, 0) << each.name;
}

}  // namespace
}  // namespace tutti::internal::cuda
