// Element types and operators by their numbers, and operators that are made.
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>

#include "c/handles.h"

namespace tutti::internal::c_api {
namespace {

constexpr DType kDTypes[] = {DType::int8,    DType::uint8,    DType::int32,       DType::uint32,
                             DType::int64,   DType::uint64,   DType::float16,     DType::float32,
                             DType::float64, DType::bfloat16, DType::float8_e4m3, DType::float8_e5m2};
constexpr Op kOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::avg};
// Those that NCCL has no numbers for.
constexpr DType kOwnDTypes[] = {DType::boolean};
constexpr Op kOwnOps[] = {Op::band, Op::bor, Op::bxor};
static_assert(std::size(kDTypes) == TUTTI_FLOAT8_E5M2 + 1 && std::size(kOps) == TUTTI_AVG + 1);
static_assert(kDTypes[TUTTI_INT8] == DType::int8 && kDTypes[TUTTI_UINT8] == DType::uint8);
static_assert(kDTypes[TUTTI_INT32] == DType::int32 && kDTypes[TUTTI_UINT32] == DType::uint32);
static_assert(kDTypes[TUTTI_INT64] == DType::int64 && kDTypes[TUTTI_UINT64] == DType::uint64);
static_assert(kDTypes[TUTTI_FLOAT16] == DType::float16 && kDTypes[TUTTI_FLOAT32] == DType::float32);
static_assert(kDTypes[TUTTI_FLOAT64] == DType::float64 && kDTypes[TUTTI_BFLOAT16] == DType::bfloat16);
static_assert(kDTypes[TUTTI_FLOAT8_E4M3] == DType::float8_e4m3 && kDTypes[TUTTI_FLOAT8_E5M2] == DType::float8_e5m2);
static_assert(kOps[TUTTI_SUM] == Op::sum && kOps[TUTTI_PROD] == Op::prod && kOps[TUTTI_AVG] == Op::avg);
static_assert(kOps[TUTTI_MAX] == Op::max && kOps[TUTTI_MIN] == Op::min);

// The enumerator of a number: of NCCL's from 0 on, of ours from first_own on. Null: there is none.
template <class Enum, std::size_t n, std::size_t own>
constexpr const Enum* find(const Enum (&nccls)[n], const Enum (&ours)[own], int first_own, int number) {
  if (static_cast<unsigned>(number) < n) return &nccls[number];
  const auto place = static_cast<unsigned>(number) - static_cast<unsigned>(first_own);
  return place < own ? &ours[place] : nullptr;
}

static_assert(*find(kDTypes, kOwnDTypes, TUTTI_BOOL, TUTTI_BOOL) == DType::boolean);
static_assert(*find(kOps, kOwnOps, TUTTI_BAND, TUTTI_BAND) == Op::band);
static_assert(*find(kOps, kOwnOps, TUTTI_BAND, TUTTI_BOR) == Op::bor);
static_assert(*find(kOps, kOwnOps, TUTTI_BAND, TUTTI_BXOR) == Op::bxor);

constexpr tutti_op_t kFirstMade = 1000;

// The number by which the communicator's calls know the operator from now on.
tutti_op_t keep(tutti_comm& comm, const Operator& made) {
  std::size_t place = 0;
  while (place < comm.operators.size() && comm.operators[place]) ++place;
  if (place == comm.operators.size()) comm.operators.emplace_back();
  comm.operators[place] = made;
  return kFirstMade + static_cast<tutti_op_t>(place);
}

}  // namespace

const DType* dtype_of_number(tutti_dtype_t number) { return find(kDTypes, kOwnDTypes, TUTTI_BOOL, number); }

DType known_dtype(const char* function, tutti_dtype_t number) {
  const DType* const known = dtype_of_number(number);
  if (known == nullptr)
    refuse(ErrorCode::invalid_argument,
           std::string(function) + ": dtype is " + std::to_string(number) + " but should be one of enum tutti_dtype");
  return *known;
}

std::optional<Operator> operator_of_number(const tutti_comm& comm, tutti_op_t number) {
  if (const Op* const op = find(kOps, kOwnOps, TUTTI_BAND, number)) return Operator(*op);
  const auto made = static_cast<std::size_t>(static_cast<unsigned>(number) - static_cast<unsigned>(kFirstMade));
  return number >= kFirstMade && made < comm.operators.size() ? comm.operators[made] : std::nullopt;
}

}  // namespace tutti::internal::c_api

namespace api = tutti::internal::c_api;

tutti_result_t tutti_op_create_premul_sum(tutti_op_t* op, const void* scalar, tutti_dtype_t dtype,
                                          tutti_scalar_residence_t residence, tutti_comm_t comm) {
  return api::guarded([&] {
    tutti_op_t& made = api::there("tutti_op_create_premul_sum", op, "op");
    tutti_comm& on = api::in_use("tutti_op_create_premul_sum", comm);
    const auto& value = api::there("tutti_op_create_premul_sum", static_cast<const char*>(scalar), "scalar");
    const tutti::DType type = api::known_dtype("tutti_op_create_premul_sum", dtype);
    if (residence != TUTTI_SCALAR_HOST_IMMEDIATE)
      api::refuse(tutti::ErrorCode::unsupported,
                  "tutti_op_create_premul_sum: the scalar must be in host memory (TUTTI_SCALAR_HOST_IMMEDIATE)");
    tutti::Operator premul(tutti::Op::premul_sum);
    premul.scalar = tutti::Scalar{type, 0};
    std::memcpy(&premul.scalar->bits, &value, tutti::size_of(type));
    made = api::keep(on, premul);
  });
}

tutti_result_t tutti_op_create_custom(tutti_op_t* op, const char* name, tutti_combine_function combine, void* user,
                                      tutti_comm_t comm) {
  return api::guarded([&] {
    tutti_op_t& made = api::there("tutti_op_create_custom", op, "op");
    tutti_comm& on = api::in_use("tutti_op_create_custom", comm);
    const char& text = api::there("tutti_op_create_custom", name, "name");
    api::there("tutti_op_create_custom", combine, "combine");
    made = api::keep(
        on, on.world.make_operator(&text, [=](const void* left, const void* right, void* out, std::size_t count) {
          combine(user, left, right, out, count);
        }));
  });
}

tutti_result_t tutti_op_destroy(tutti_op_t op, tutti_comm_t comm) {
  return api::guarded([&] {
    if (comm == nullptr) api::refuse_null("tutti_op_destroy", "comm");
    if (op < api::kFirstMade || !api::operator_of_number(*comm, op))
      api::refuse(tutti::ErrorCode::invalid_argument,
                  "tutti_op_destroy: op is " + std::to_string(op) +
                      " but should be an operator that was made for this communicator and not destroyed");
    comm->operators[static_cast<std::size_t>(op - api::kFirstMade)].reset();
  });
}
