#include "cuda/cases.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "brief.h"
#include "types/kinds.h"

namespace tutti::internal::cuda_test {

using namespace reduce_test;

namespace {

// The first ten.
std::string in_words(const std::vector<Buffer>& buffers) {
  std::string text;
  for (const Buffer& each : std::span(buffers).first(std::min<std::size_t>(buffers.size(), 10))) {
    text += each.in_place_of < 0 ? fmt::format(" {}", each.skew) : fmt::format(" ={}", each.in_place_of);
    if (each.partial) text += "p";
  }
  return text;
}

std::string in_words(const Case& each) {
  return fmt::format("{} of {} x {} {}{}, sources{}, targets{}", to_string(each.spec.op), each.sources.size(),
                     each.count, to_string(each.spec.dtype), each.spec.finish ? ", finished" : "",
                     in_words(each.sources), in_words(each.targets));
}

std::vector<Fenced> fenced(const Case& each, const std::vector<Buffer>& buffers) {
  std::vector<Fenced> memory;
  for (const Buffer& buffer : buffers) {
    const std::size_t bytes = bytes_of(each.spec.dtype, buffer.partial);
    memory.emplace_back(each.count * bytes, buffer.skew * bytes);
  }
  return memory;
}

}  // namespace

void expect_same_bits(const Case& each, const Runner& runner, Kind kind, std::mt19937_64& random) {
  std::vector<Fenced> inputs = fenced(each, each.sources), outputs = fenced(each, each.targets),
                      expected = fenced(each, each.targets);
  std::vector<ReduceSource> sources;
  std::vector<ReduceTarget> targets, expected_targets;
  for (std::size_t s = 0; s < each.sources.size(); ++s) {
    const bool partial = each.sources[s].partial;
    std::ranges::copy(elements(each.spec.dtype, partial, each.count, kind, random), inputs[s].data());
    sources.push_back({inputs[s].data(), each.joins[s], partial});
  }
  const auto memory_of = [&](std::size_t t) -> Fenced& {
    const int source = each.targets[t].in_place_of;
    return source < 0 ? outputs[t] : inputs[static_cast<std::size_t>(source)];
  };
  for (std::size_t t = 0; t < each.targets.size(); ++t) {
    targets.push_back({memory_of(t).data(), each.targets[t].partial});
    expected_targets.push_back({expected[t].data(), each.targets[t].partial});
  }
  reduce(each.spec, sources, expected_targets, each.count);
  runner(each.spec, sources, targets, each.count);
  for (std::size_t t = 0; t < each.targets.size(); ++t) {
    const auto got = memory_of(t).bytes(), want = expected[t].bytes();
    const auto differ = std::ranges::mismatch(got, want).in1;
    ASSERT_TRUE(differ == got.end()) << in_words(each) << ": target " << t << ", byte " << differ - got.begin();
    ASSERT_TRUE(memory_of(t).fence_intact()) << in_words(each) << ": around target " << t;
  }
}

void for_each_case(DType dtype, std::size_t most_count, std::mt19937_64& random,
                   const std::function<void(const Case&, Kind)>& body) {
  const auto below = [&](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
  const std::size_t skews = 16 / size_of(dtype);
  const std::vector<int> ranks =
      kBrief ? std::vector{1, 2, 3, 5, 8, 9, 33} : std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 33, 100};
  for (const Op op : ops_of(dtype)) {
    for (const int n : ranks) {
      for (std::size_t skew = 0; skew < skews; ++skew) {
        for (int round = 0; round < 4; ++round) {
          Case each;
          each.spec = {dtype, op, below(3) != 0, static_cast<std::uint32_t>(below(4) == 0 ? 1 + below(1000) : n)};
          each.joins = below(4) == 0 ? random_joins(n, random) : canonical_joins(n);
          const std::size_t most = n < 16 ? most_count : most_count / 4;
          each.count = round == 0 ? below(40) : (1 + below(most / 2)) * 2 - 1;
          // All alike; all but the first; each for itself.
          const auto any_skew = [&] { return round < 2 ? skew : round == 2 ? 0 : below(skews); };
          const std::size_t partials = is_narrow_float(dtype) ? below(4) : 0;  // none, all, some
          const auto any_partial = [&] { return partials == 1 || (partials >= 2 && below(2) == 0); };
          for (int s = 0; s < n; ++s) each.sources.push_back({s == 0 ? skew : any_skew(), any_partial()});
          for (std::size_t t = 0, m = 1 + below(3); t < m; ++t) each.targets.push_back({any_skew(), any_partial()});
          if (const std::size_t source = below(2 * each.sources.size()); source < each.sources.size())
            each.targets[below(each.targets.size())] = {each.sources[source].skew, each.sources[source].partial,
                                                        static_cast<int>(source)};
          body(each, round % 2 == 0 ? Kind::wild : Kind::tame);
        }
      }
    }
  }
}

}  // namespace tutti::internal::cuda_test
