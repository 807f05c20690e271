// The collectives, blocking and started. On the way to success nothing is allocated and no text is made.
#include <memory>
#include <optional>
#include <string>

#include "c/call.h"
#include "c/handles.h"
#include "runtime/any_call.h"

namespace {

using namespace tutti;
using namespace tutti::internal::c_api;
using internal::AnyCall;
using internal::CallSpec;

[[noreturn]] void refuse_number(Collective collective, const char* what, int number, const char* expected) {
  refuse(ErrorCode::invalid_argument, std::string(to_string(collective)) + ": " + what + " is " +
                                          std::to_string(number) + " but should be " + expected);
}

}  // namespace

Described tutti::internal::c_api::describe(const CCall& call, const tutti_comm& comm) {
  const DType* const dtype = dtype_of_number(call.dtype);
  if (dtype == nullptr) refuse_number(call.collective, "dtype", call.dtype, "one of enum tutti_dtype");
  const std::optional<Operator> op = operator_of_number(comm, call.op);
  if (!op)
    refuse_number(call.collective, "op", call.op,
                  "one of enum tutti_op, or an operator that was made for this communicator and not destroyed");
  return {{.collective = call.collective,
           .dtype = *dtype,
           .op = op->op,
           .order = comm.order,
           .algorithm = comm.algorithm,
           .flags = op->number,
           .root = call.root,
           .count = call.count},
          op->scalar};
}

namespace {

inline tutti_result_t run(const char* function, tutti_comm_t comm, const CCall& call, void* stream) {
  return guarded([&] {
    tutti_comm& on = in_use(function, comm);
    const Described what = describe(call, on);
    AnyCall::run(on.world, what.spec, call.sendbuff, call.recvbuff, stream, what.scalar);
  });
}

tutti_result_t start(const char* function, tutti_comm_t comm, const CCall& call, void* stream, tutti_work_t* work) {
  return guarded([&] {
    tutti_work_t& made = there(function, work, "work");
    made = nullptr;
    tutti_comm& on = in_use(function, comm);
    auto started = std::make_unique<tutti_work>();  // first: a call that was made must have an owner
    const Described what = describe(call, on);
    started->work = AnyCall::start(on.world, what.spec, call.sendbuff, call.recvbuff, stream, what.scalar);
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
tutti_result_t tutti_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, tutti_op_t op,
                          tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::scan, sendbuff, recvbuff, count, dtype, op}, stream);
}
tutti_result_t tutti_exclusive_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                    tutti_op_t op, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::exclusive_scan, sendbuff, recvbuff, count, dtype, op}, stream);
}
tutti_result_t tutti_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, count, dtype}, stream);
}
tutti_result_t tutti_barrier(tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::barrier}, stream);
}

// --- started calls --------------------------------------------------------------------------------------------------

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
tutti_result_t tutti_start_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype, tutti_op_t op,
                                tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::scan, sendbuff, recvbuff, count, dtype, op}, stream, work);
}
tutti_result_t tutti_start_exclusive_scan(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                          tutti_op_t op, tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::exclusive_scan, sendbuff, recvbuff, count, dtype, op}, stream, work);
}
tutti_result_t tutti_start_all_to_all(const void* sendbuff, void* recvbuff, size_t count, tutti_dtype_t dtype,
                                      tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, count, dtype}, stream, work);
}
tutti_result_t tutti_start_barrier(tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::barrier}, stream, work);
}
