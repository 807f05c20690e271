/// @file
/// Element types, reduction operators and the names of the algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tutti/export.h"

namespace tutti {

/// IEEE 754 binary16 as it lies in memory. It carries bits and has no arithmetic; reductions accumulate it in float32.
struct float16 {
  std::uint16_t bits;                                  ///< sign 1, exponent 5, fraction 10
  friend bool operator==(float16, float16) = default;  ///< compares bits
};
/// bfloat16 as it lies in memory: the upper half of a float32. Otherwise as float16.
struct bfloat16 {
  std::uint16_t bits;                                    ///< sign 1, exponent 8, fraction 7
  friend bool operator==(bfloat16, bfloat16) = default;  ///< compares bits
};

/// The type of an element.
enum class DType : std::uint8_t { float32, float64, float16, bfloat16, int8, uint8, int32, uint32, int64, uint64 };

/// How elements are combined. Signed integers are combined like unsigned ones: they wrap around. `avg` divides the sum
/// by the number of ranks: floating-point types by one IEEE division in the accumulation type, integers by a division
/// that truncates toward zero. For min and max, a NaN wins over every number, and -0 < +0.
enum class Op : std::uint8_t { sum, prod, min, max, avg };

/// The order in which inputs are combined. `canonical` is the pairwise tree T of docs/design/canonical_order.md: the
/// result has the same bits with every algorithm, transport, message size and placement. `any` admits algorithms that
/// cannot keep this order, such as ring. Each input is still combined exactly once, and the bits are the same in every
/// run with the same call, ranks, hosts and table.
enum class Order : std::uint8_t { canonical, any };

/// What a call does.
enum class Collective : std::uint8_t {
  all_reduce,
  reduce_scatter,
  all_gather,
  broadcast,
  barrier,
  reduce,
  gather,
  scatter,
  scan,
  exclusive_scan
};

/// How a call is done. algorithms.def lists the names by collective: Algorithm::ring, for example. `automatic`: the
/// communicator's table chooses.
enum class Algorithm : std::uint8_t {
  automatic,
#define TUTTI_ALGORITHM(collective, name) name,
#define TUTTI_ALGORITHM_AGAIN(collective, name)
#include "tutti/algorithms.def"
};

/// Where a buffer lies. `automatic`: the library asks the CUDA driver about each buffer of each call. In a build
/// without CUDA, and in a process that has not loaded the driver, that means host memory.
enum class MemoryKind : std::uint8_t { automatic, host, pinned, device, managed };

/// Bytes of one element. Throws Error{invalid_argument} for what is no DType.
TUTTI_API std::size_t size_of(DType dtype);
/// Bytes of one partial result: 4 for 16-bit floats, else size_of(). Throws like size_of().
TUTTI_API std::size_t accumulation_size_of(DType dtype);

/// What to_string() gives for what is no enumerator.
inline constexpr std::string_view kNoName = "?";

/// @name Names
/// @{

/// The enumerator's name, or kNoName; `automatic` is "auto".
TUTTI_API std::string_view to_string(DType dtype);
TUTTI_API std::string_view to_string(Op op);
TUTTI_API std::string_view to_string(Order order);
TUTTI_API std::string_view to_string(Collective collective);
TUTTI_API std::string_view to_string(Algorithm algorithm);
/// @}

/// @name Enumerators by name
/// @{

/// The inverse of to_string(); nothing for a name that does not exist.
TUTTI_API std::optional<DType> parse_dtype(std::string_view name);
TUTTI_API std::optional<Op> parse_op(std::string_view name);
TUTTI_API std::optional<Order> parse_order(std::string_view name);
TUTTI_API std::optional<Collective> parse_collective(std::string_view name);
TUTTI_API std::optional<Algorithm> parse_algorithm(std::string_view name);
/// @}

/// @name All enumerators
/// @{

/// In the order of their declaration.
TUTTI_API std::span<const DType> all_dtypes();
TUTTI_API std::span<const Op> all_ops();
TUTTI_API std::span<const Algorithm> all_algorithms();  ///< without `automatic`
/// @}

// Behind dtype_of.
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

/// The DType of a C++ type: `dtype_of<float>` is DType::float32. A type that is not listed above does not compile.
template <class T>
inline constexpr DType dtype_of = dtype_of_type<T>::value;

}  // namespace tutti
