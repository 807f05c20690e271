// Element types, reduction operators and the names of the algorithms: the vocabulary that every layer shares.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tutti {

// IEEE 754 binary16 and bfloat16 as they lie in memory. They carry bits only; arithmetic belongs to the reduction,
// which accumulates both in float32.
struct float16 {
  std::uint16_t bits;
  friend bool operator==(float16, float16) = default;
};
struct bfloat16 {
  std::uint16_t bits;
  friend bool operator==(bfloat16, bfloat16) = default;
};

enum class DType : std::uint8_t { float32, float64, float16, bfloat16, int8, uint8, int32, uint32, int64, uint64 };

// How elements are combined. Signed integers are combined as unsigned ones (wrap-around). `avg` divides the sum by the
// number of ranks: for floating-point types by one IEEE division in the accumulation type, for integers truncating
// toward zero. A NaN wins min and max, and -0 < +0.
enum class Op : std::uint8_t { sum, prod, min, max, avg };

// The order in which contributions may be combined. `canonical` is the pairwise tree T of the design page: the same
// bits whatever the algorithm, transport, message size or placement. `any` admits algorithms that cannot keep it
// (ring): each contribution still exactly once, and the same bits from run to run as long as call, ranks, hosts and
// table are the same.
enum class Order : std::uint8_t { canonical, any };

enum class Collective : std::uint8_t { all_reduce, reduce_scatter, all_gather, broadcast, barrier };

// The names of the algorithms, which algorithms.def lists by collective: Algorithm::ring, say. `automatic` lets the
// communicator's table choose.
enum class Algorithm : std::uint8_t {
  automatic,
#define TUTTI_ALGORITHM(collective, name) name,
#define TUTTI_ALGORITHM_AGAIN(collective, name)
#include "tutti/algorithms.def"
};

// Where a buffer lies. `automatic`: wherever the driver says, which is asked about each buffer of each call; in a build
// without CUDA, and in a process without a driver, in host memory.
enum class MemoryKind : std::uint8_t { automatic, host, pinned, device, managed };

// Both throw Error{invalid_argument} for what is no DType.
std::size_t size_of(DType dtype);               // bytes of one element
std::size_t accumulation_size_of(DType dtype);  // bytes of one partial result: 4 for 16-bit floats, else size_of

// What is no enumerator has no name.
inline constexpr std::string_view kNoName = "?";
std::string_view to_string(DType dtype);
std::string_view to_string(Op op);
std::string_view to_string(Order order);
std::string_view to_string(Collective collective);
std::string_view to_string(Algorithm algorithm);

// The inverse of to_string; nothing for a name that does not exist.
std::optional<DType> parse_dtype(std::string_view name);
std::optional<Op> parse_op(std::string_view name);
std::optional<Order> parse_order(std::string_view name);
std::optional<Collective> parse_collective(std::string_view name);
std::optional<Algorithm> parse_algorithm(std::string_view name);  // "auto" is `automatic`

std::span<const DType> all_dtypes();
std::span<const Op> all_ops();
std::span<const Algorithm> all_algorithms();  // without `automatic`

template <class T>
struct dtype_of_type;
template <>
struct dtype_of_type<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct dtype_of_type<double> {
  static constexpr DType value = DType::float64;
};
template <>
struct dtype_of_type<float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct dtype_of_type<bfloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <>
struct dtype_of_type<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct dtype_of_type<std::uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct dtype_of_type<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct dtype_of_type<std::uint32_t> {
  static constexpr DType value = DType::uint32;
};
template <>
struct dtype_of_type<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct dtype_of_type<std::uint64_t> {
  static constexpr DType value = DType::uint64;
};

template <class T>
inline constexpr DType dtype_of = dtype_of_type<T>::value;

}  // namespace tutti
