// Names and sizes of the vocabulary in tutti/types.h.
#include "tutti/types.h"

#include <array>
#include <string>

#include "tutti/error.h"
#include "types/collective.h"
#include "types/kinds.h"

namespace tutti {
namespace {

constexpr std::array kDTypes{DType::float32, DType::float64,     DType::float16,    DType::bfloat16, DType::int8,
                             DType::uint8,   DType::int32,       DType::uint32,     DType::int64,    DType::uint64,
                             DType::boolean, DType::float8_e4m3, DType::float8_e5m2};
constexpr std::array<std::string_view, kDTypes.size()> kDTypeNames{
    "float32", "float64", "float16", "bfloat16", "int8",        "uint8",      "int32",
    "uint32",  "int64",   "uint64",  "boolean",  "float8_e4m3", "float8_e5m2"};
constexpr std::array<std::size_t, kDTypes.size()> kDTypeSizes{4, 8, 2, 2, 1, 1, 4, 4, 8, 8, 1, 1, 1};
constexpr std::array kOps{Op::sum, Op::prod, Op::min, Op::max, Op::avg, Op::band, Op::bor, Op::bxor};
constexpr std::array<std::string_view, kOps.size() + 2> kOpNames{"sum",  "prod", "min",  "max",        "avg",
                                                                 "band", "bor",  "bxor", "premul_sum", "custom"};
constexpr std::array<std::string_view, 2> kOrderNames{"canonical", "any"};
constexpr std::array kAlgorithms{
#define TUTTI_ALGORITHM(collective, name) Algorithm::name,
#define TUTTI_ALGORITHM_AGAIN(collective, name)
#include "tutti/algorithms.def"
};
constexpr std::array<std::string_view, kAlgorithms.size() + 1> kAlgorithmNames{
    "auto",
#define TUTTI_ALGORITHM(collective, name) #name,
#define TUTTI_ALGORITHM_AGAIN(collective, name)
#include "tutti/algorithms.def"
};

template <class Enum, std::size_t n>
std::optional<Enum> parse(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

template <class Enum, std::size_t n>
std::string_view name_of(const std::array<std::string_view, n>& names, Enum value) {
  const auto i = static_cast<std::size_t>(value);
  return i < n ? names[i] : kNoName;
}

}  // namespace

std::size_t size_of(DType dtype) {
  const auto i = static_cast<std::size_t>(dtype);
  if (i >= kDTypeSizes.size())
    throw Error(ErrorCode::invalid_argument, "there is no element type " + std::to_string(i) + " (tutti/types.h)");
  return kDTypeSizes[i];
}
std::size_t accumulation_size_of(DType dtype) { return internal::is_narrow_float(dtype) ? 4 : size_of(dtype); }

bool can_combine(DType dtype, Op op) {
  if (to_string(dtype) == kNoName || to_string(op) == kNoName) return false;
  if (internal::combines_bits(op)) return !internal::is_floating(dtype);
  return op != Op::avg || dtype != DType::boolean;
}

std::string_view to_string(DType dtype) { return name_of(kDTypeNames, dtype); }
std::string_view to_string(Op op) { return name_of(kOpNames, op); }
std::string_view to_string(Order order) { return name_of(kOrderNames, order); }
std::string_view to_string(Collective collective) { return internal::traits_of(collective).name; }
std::string_view to_string(Algorithm algorithm) { return name_of(kAlgorithmNames, algorithm); }

std::optional<DType> parse_dtype(std::string_view name) { return parse<DType>(kDTypeNames, name); }
std::optional<Op> parse_op(std::string_view name) {
  for (const Op op : kOps)
    if (to_string(op) == name) return op;
  return std::nullopt;
}
std::optional<Order> parse_order(std::string_view name) { return parse<Order>(kOrderNames, name); }
std::optional<Collective> parse_collective(std::string_view name) {
  for (const internal::CollectiveTraits& each : internal::kCollectives)
    if (each.name == name) return each.collective;
  return std::nullopt;
}
std::optional<Algorithm> parse_algorithm(std::string_view name) { return parse<Algorithm>(kAlgorithmNames, name); }

std::span<const DType> all_dtypes() { return kDTypes; }
std::span<const Op> all_ops() { return kOps; }
std::span<const Algorithm> all_algorithms() { return kAlgorithms; }

}  // namespace tutti
