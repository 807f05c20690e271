#include "executor/plan_reduction_check.h"

#include <fmt/format.h>

#include "schedule/verify_form.h"
#include "types/call.h"
#include "types/kinds.h"

namespace tutti::internal {
namespace {

// Some vectors of every instruction set, and a rest.
constexpr std::size_t kCount = 99;
constexpr std::size_t kBegins = 157;  // where sources may begin
constexpr std::size_t kStride = 31;   // from one source to the next
constexpr std::size_t kMaxBytes = 8;

// A number in [1, 2) with a full mantissa, so that a sum shows its order; of integers, any.
std::uint64_t number_of(DType dtype, std::size_t bytes, std::uint64_t bits) {
  switch (dtype) {
    case DType::float64: return 0x3ff0000000000000 | bits >> 12;
    case DType::float32: break;
    case DType::float16:
      if (bytes == 2) return 0x3c00 | (bits & 0x3ff);
      break;
    case DType::bfloat16:
      if (bytes == 2) return 0x3f80 | (bits & 0x7f);
      break;
    case DType::float8_e4m3:
      if (bytes == 1) return 0x38 | (bits & 7);
      break;
    case DType::float8_e5m2:
      if (bytes == 1) return 0x3c | (bits & 3);
      break;
    default: return bits;
  }
  return 0x3f800000 | (bits & 0x7fffff);
}

// bytes: of one of them.
std::vector<std::byte> make_numbers(DType dtype, std::size_t bytes) {
  std::vector<std::byte> made;
  for (std::size_t i = 0; i < kBegins + kCount; ++i) {
    const std::uint64_t number = number_of(dtype, bytes, mix((i + 1) * 0x9e3779b97f4a7c15));
    for (std::size_t b = 0; b < bytes; ++b) made.push_back(static_cast<std::byte>(number >> (8 * b)));
  }
  return made;
}

}  // namespace

ReductionCheck::ReductionCheck(const Plan& plan, std::uint32_t leaves)
    : plan_(plan),
      leaves_(leaves),
      elements_(make_numbers(plan.call.dtype, size_of(plan.call.dtype))),
      partials_(make_numbers(plan.call.dtype, accumulation_size_of(plan.call.dtype))) {}

const std::byte* ReductionCheck::numbers(const PlanSource& source, std::size_t which) const {
  const std::size_t begin = which * kStride % kBegins;
  return (source.partial ? partials_ : elements_).data() + begin * source.element_bytes;
}

void ReductionCheck::check(const ReduceStep& step, std::size_t reduction, bool finish, bool partial) const {
  if (reduction >= plan_.reductions.size()) throw Refutation{fmt::format("there is no reduction {}", reduction)};
  std::vector<ReduceSource> sources;
  for (const PlanSource& source : plan_.sources_of(step))
    sources.push_back({numbers(source, sources.size()), source.joins, source.partial});
  const ReduceSpec spec{
      .dtype = plan_.call.dtype, .op = combined_as(plan_.call.op), .finish = finish, .leaves = leaves_};
  std::vector<std::byte> expected(kCount * kMaxBytes), found(kCount * kMaxBytes);
  const ReduceTarget wanted{expected.data(), partial}, made{found.data(), partial};
  const FloatEnvironment environment;
  reduce(spec, sources, {&wanted, 1}, kCount);
  plan_.reductions[reduction].run(sources, {&made, 1}, kCount, false);
  if (found != expected) throw Refutation{fmt::format("reduction {} gives something else than its step", reduction)};
}

void ReductionCheck::check(const ReduceStep& step) const {
  check(step, step.reduction, step.finish, step.partial);
  if (step.finisher != 0)
    check(step, step.reduction + 1, true, std::get<ReduceStep>(plan_.steps[step.finisher]).partial);
}

}  // namespace tutti::internal
