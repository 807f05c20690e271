// The collectives, blocking and started. On the way to success nothing is allocated and no text is made.
#include <cstdint>
#include <iterator>
#include <memory>
#include <string>

#include "c/call.h"
#include "c/handles.h"
#include "runtime/any_call.h"

namespace {

using namespace tutti;
using namespace tutti::internal::c_api;
using internal::AnyCall;
using internal::CallSpec;

constexpr DType kDTypes[] = {DType::int8,   DType::uint8,   DType::int32,   DType::uint32,  DType::int64,
                             DType::uint64, DType::float16, DType::float32, DType::float64, DType::bfloat16};
constexpr Op kOps[] = {Op::sum, Op::prod, Op::max, Op::min, Op::avg};
static_assert(std::size(kDTypes) == TUTTI_BFLOAT16 + 1 && std::size(kOps) == TUTTI_AVG + 1);
static_assert(kDTypes[TUTTI_INT8] == DType::int8 && kDTypes[TUTTI_UINT8] == DType::uint8);
static_assert(kDTypes[TUTTI_INT32] == DType::int32 && kDTypes[TUTTI_UINT32] == DType::uint32);
static_assert(kDTypes[TUTTI_INT64] == DType::int64 && kDTypes[TUTTI_UINT64] == DType::uint64);
static_assert(kDTypes[TUTTI_FLOAT16] == DType::float16 && kDTypes[TUTTI_FLOAT32] == DType::float32);
static_assert(kDTypes[TUTTI_FLOAT64] == DType::float64 && kDTypes[TUTTI_BFLOAT16] == DType::bfloat16);
static_assert(kOps[TUTTI_SUM] == Op::sum && kOps[TUTTI_PROD] == Op::prod && kOps[TUTTI_AVG] == Op::avg);
static_assert(kOps[TUTTI_MAX] == Op::max && kOps[TUTTI_MIN] == Op::min);

[[noreturn]] void refuse_number(Collective collective, const char* what, int number, const char* expected) {
  refuse(ErrorCode::invalid_argument, std::string(to_string(collective)) + ": " + what + " is " +
                                          std::to_string(number) + " but should be " + expected);
}

}  // namespace

CallSpec tutti::internal::c_api::spec_of(const CCall& call, Order order) {
  if (static_cast<unsigned>(call.dtype) >= std::size(kDTypes))
    refuse_number(call.collective, "dtype", call.dtype, "one of enum tutti_dtype, 0 to 9");
  if (static_cast<unsigned>(call.op) >= std::size(kOps))
    refuse_number(call.collective, "op", call.op, "one of enum tutti_op, 0 to 4");
  return {.collective = call.collective,
          .dtype = kDTypes[call.dtype],
          .op = kOps[call.op],
          .order = order,
          .root = call.root,
          .count = call.count};
}

namespace {

inline tutti_result_t run(const char* function, tutti_comm_t comm, const CCall& call, void* stream) {
  return guarded([&] {
    tutti_comm& on = in_use(function, comm);
    AnyCall::run(on.world, spec_of(call, on.order), call.sendbuff, call.recvbuff, stream);
  });
}

tutti_result_t start(const char* function, tutti_comm_t comm, const CCall& call, void* stream, tutti_work_t* work) {
  return guarded([&] {
    tutti_work_t& made = there(function, work, "work");
    made = nullptr;
    tutti_comm& on = in_use(function, comm);
    auto started = std::make_unique<tutti_work>();  // first: a call that was made must have an owner
    started->work = AnyCall::start(on.world, spec_of(call, on.order), call.sendbuff, call.recvbuff, stream);
    made = started.release();
  });
}

}  // namespace

tutti_result_t tutti_all_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, tutti_op_t op,
                                tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_reduce, sendbuff, recvbuff, count, dtype, op}, stream);
}
tutti_result_t tutti_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, tutti_op_t op,
                            int root, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::reduce, sendbuff, recvbuff, count, dtype, op, root}, stream);
}
tutti_result_t tutti_broadcast(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                               tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::broadcast, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream);
}
tutti_result_t tutti_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount, tutti_dtype_t dtype,
                                    tutti_op_t op, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, dtype, op}, stream);
}
tutti_result_t tutti_all_gather(const void* sendbuff, void* recvbuff, size_t sendcount, tutti_dtype_t dtype,
                                tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_gather, sendbuff, recvbuff, sendcount, dtype}, stream);
}
tutti_result_t tutti_gather(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                            tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::gather, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream);
}
tutti_result_t tutti_scatter(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                             tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::scatter, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream);
}
tutti_result_t tutti_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, count, dtype}, stream);
}
tutti_result_t tutti_barrier(tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::barrier}, stream);
}

// --- started calls
// ------------------------------------------------------------------------------------------------------

tutti_result_t tutti_start_all_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                      tutti_op_t op, tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_reduce, sendbuff, recvbuff, count, dtype, op}, stream, work);
}
tutti_result_t tutti_start_reduce(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                  tutti_op_t op, int root, tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::reduce, sendbuff, recvbuff, count, dtype, op, root}, stream, work);
}
tutti_result_t tutti_start_broadcast(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                                     tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::broadcast, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream,
               work);
}
tutti_result_t tutti_start_reduce_scatter(const void* sendbuff, void* recvbuff, size_t recvcount, tutti_dtype_t dtype,
                                          tutti_op_t op, tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::reduce_scatter, sendbuff, recvbuff, recvcount, dtype, op}, stream, work);
}
tutti_result_t tutti_start_all_gather(const void* sendbuff, void* recvbuff, size_t sendcount, tutti_dtype_t dtype,
                                      tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_gather, sendbuff, recvbuff, sendcount, dtype}, stream, work);
}
tutti_result_t tutti_start_gather(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                                  tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::gather, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream, work);
}
tutti_result_t tutti_start_scatter(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, int root,
                                   tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::scatter, sendbuff, recvbuff, count, dtype, TUTTI_SUM, root}, stream, work);
}
tutti_result_t tutti_start_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                      tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, count, dtype}, stream, work);
}
tutti_result_t tutti_start_barrier(tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::barrier}, stream, work);
}

// --- works
// --------------------------------------------------------------------------------------------------------------

tutti_result_t tutti_work_test(tutti_work_t work, int* done) {
  return guarded([&] {
    int& to = there("tutti_work_test", done, "done");
    to = there("tutti_work_test", work, "work").work.test() ? 1 : 0;
  });
}

tutti_result_t tutti_work_wait(tutti_work_t work) {
  return guarded([&] { there("tutti_work_wait", work, "work").work.wait(); });
}

tutti_result_t tutti_work_free(tutti_work_t work) {
  return guarded([&] { delete work; });
}
