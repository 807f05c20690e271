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
/// An 8-bit float as it lies in memory, E4M3 of the OCP 8-bit Floating Point Specification (OFP8), revision 1.0, which
/// other libraries call e4m3fn. It has no infinity. 0x7f and 0xff are its NaNs, and 448 is its largest number.
/// Otherwise as float16.
struct float8_e4m3 {
  std::uint8_t bits;                                           ///< sign 1, exponent 4, fraction 3
  friend bool operator==(float8_e4m3, float8_e4m3) = default;  ///< compares bits
};
/// E5M2 of the same specification: infinities and NaNs as IEEE 754 has them. 57344 is its largest number. Otherwise as
/// float16.
struct float8_e5m2 {
  std::uint8_t bits;                                           ///< sign 1, exponent 5, fraction 2
  friend bool operator==(float8_e5m2, float8_e5m2) = default;  ///< compares bits
};

/// The type of an element.
///
/// The result of a floating-point type that is too large for the type is an infinity, as IEEE 754 has it. float8_e4m3
/// has none: there it is a NaN. So an overflow is seen. (PyTorch converts so, too; NCCL gives the largest number.)
///
/// `boolean` is one byte, as C++'s bool: 0 is false. A reduction takes every other byte for true, and its result has
/// only the bytes 0 and 1. Calls that only move bytes leave them as they are.
enum class DType : std::uint8_t {
  float32,
  float64,
  float16,
  bfloat16,
  int8,
  uint8,
  int32,
  uint32,
  int64,
  uint64,
  boolean,
  float8_e4m3,
  float8_e5m2
};

/// How elements are combined.
///
/// - Signed integers are combined like unsigned ones: they wrap around.
/// - `avg` divides the sum by the number of ranks: floating-point types by one IEEE division in the accumulation type,
///   integers by a division that truncates toward zero.
/// - For min and max, a NaN wins over every number, and -0 < +0.
/// - `band`, `bor` and `bxor` combine bits: of integers, and of booleans.
/// - Of booleans, sum and max are `bor`, and prod and min are `band`.
/// - `premul_sum` is a sum of which each rank scales its own part: tutti::premul_sum() in tutti/operator.h makes it.
/// - `custom` is a function of the caller's: Communicator::make_operator() makes it.
///
/// can_combine() says which operators a type has. A call with another one throws Error{invalid_argument}, and is not
/// made.
enum class Op : std::uint8_t { sum, prod, min, max, avg, band, bor, bxor, premul_sum, custom };

/// The order in which inputs are combined. `canonical` is the pairwise tree T of docs/design/canonical_order.md: the
/// result has the same bits with every algorithm, transport, message size and placement. `any` admits algorithms that
/// cannot keep this order, such as ring. Each input is still combined exactly once, and the bits are the same in every
/// run with the same call, ranks, hosts and table.
enum class Order : std::uint8_t { canonical, any };

/// What a call does. `transfer`: a send and its receive together, of what rank 0 has to the others.
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
  exclusive_scan,
  transfer,
  all_to_all
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
/// Bytes of one partial result: 4 for 16-bit and 8-bit floats, else size_of(). Throws like size_of().
TUTTI_API std::size_t accumulation_size_of(DType dtype);
/// Whether elements of the type can be combined with the operator. Floating-point types have no band, bor and bxor;
/// boolean has no avg. False for what is no enumerator.
TUTTI_API bool can_combine(DType dtype, Op op);

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

/// The inverse of to_string(); nothing for a name that does not exist, and for `premul_sum` and `custom`.
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
TUTTI_API std::span<const Op> all_ops();  ///< without `premul_sum` and `custom`, which need more than their name
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
struct dtype_of_type<float8_e4m3> {
  static constexpr DType value = DType::float8_e4m3;
};
template <>
struct dtype_of_type<float8_e5m2> {
  static constexpr DType value = DType::float8_e5m2;
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
template <>
struct dtype_of_type<bool> {
  static constexpr DType value = DType::boolean;
};

/// The DType of a C++ type: `dtype_of<float>` is DType::float32. A type that is not listed above does not compile.
template <class T>
inline constexpr DType dtype_of = dtype_of_type<T>::value;

}  // namespace tutti
