#include "cuda/lanes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace tutti::internal::cuda_test {

void Watched::complain(const std::string& what) {
  if (first_wrong_.empty()) first_wrong_ = what;
}

void Watched::check_aligned(const char* what, const std::byte* at, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(at) % bytes != 0)
    complain(fmt::format("{} of {} bytes that is not aligned", what, bytes));
}

const std::byte* Watched::load(const std::byte* from, std::size_t bytes) {
  check_aligned("a load", from, bytes);
  const auto holds = [&](const Range& range) { return from >= range.first && from + bytes <= range.last; };
  if (std::ranges::none_of(sources, holds)) complain(fmt::format("a load of {} bytes outside all sources", bytes));
  return from;
}

std::byte* Watched::store(std::byte* to, std::size_t bytes) {
  check_aligned("a store", to, bytes);
  bool found = false;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    if (to < targets[t].first || to + bytes > targets[t].last) continue;
    found = true;
    for (std::size_t i = 0; i < bytes; ++i) ++stores[t][static_cast<std::size_t>(to - targets[t].first) + i];
  }
  if (!found) complain(fmt::format("a store of {} bytes outside all targets", bytes));
  return to;
}

std::string Watched::wrong() const {
  if (!first_wrong_.empty()) return first_wrong_;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    for (std::size_t i = 0; i < stores[t].size(); ++i) {
      if (stores[t][i] != 1) return fmt::format("byte {} of target {} is stored {} times", i, t, stores[t][i]);
    }
  }
  return "";
}

namespace {

void run(const Launch& launch) {
  switch (launch.name.dtype) {
    case DType::float32:
    case DType::float64: return run_floats(launch);
    case DType::float16:
    case DType::bfloat16: return run_halves(launch);
    case DType::float8_e4m3:
    case DType::float8_e5m2: return run_float8s(launch);
    default: return run_integers(launch);
  }
}

// Few enough for each to have several cells, or so many that most have nothing to do.
std::vector<std::size_t> some_threads(std::mt19937_64& random) {
  constexpr std::size_t kSome[] = {1, 2, 3, 5, 8, 17, 64};
  std::vector<std::size_t> threads(kSome[random() % std::size(kSome)]);
  std::iota(threads.begin(), threads.end(), std::size_t{0});
  std::ranges::shuffle(threads, random);
  return threads;
}

Watched watch(const cuda::Call& call, bool half) {
  Watched watched;
  const auto bytes = [&](bool partial) {
    return call.count * (half && partial ? accumulation_size_of(call.dtype) : size_of(call.dtype));
  };
  for (const ReduceSource& source : call.sources)
    watched.sources.push_back({source.data, source.data + bytes(source.partial)});
  for (const ReduceTarget& target : call.targets) {
    if (call.only_partial.value_or(target.partial) != target.partial) continue;
    watched.targets.push_back({target.data, target.data + bytes(target.partial)});
    watched.stores.emplace_back(bytes(target.partial));
  }
  return watched;
}

}  // namespace

void reduce_on_lanes(const ReduceSpec& spec, std::span<const ReduceSource> sources,
                     std::span<const ReduceTarget> targets, std::size_t count, std::mt19937_64& random) {
  for (const cuda::Call& call : cuda::calls_of(spec, sources, targets, count)) {
    const cuda::Plan plan(call);
    Watched watched = watch(call, call.mixed);
    Launch launch{plan.kernel(), nullptr, nullptr, some_threads(random), plan.waiting_cells(), &watched};
    cuda::FewTask few;
    cuda::ManyTask many;
    if (plan.kernel().shape == cuda::Shape::tree) {
      many = plan.task<cuda::ManyTask>();
      launch.many = &many;
    } else {
      few = plan.task<cuda::FewTask>();
      launch.few = &few;
    }
    run(launch);
    ASSERT_EQ(watched.wrong(), "");
  }
}

}  // namespace tutti::internal::cuda_test
