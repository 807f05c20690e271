// The collectives whose rows are not all of one length, blocking and started.
#include <memory>
#include <span>

#include "c/call.h"
#include "c/handles.h"

namespace {

using namespace tutti;
using namespace tutti::internal::c_api;
using internal::CallSpec;

// Null counts are no rows, which the call refuses where it needs some.
UnequalRows rows_of(const tutti_comm& on, const size_t* counts, const size_t* displs) {
  const auto ranks = static_cast<std::size_t>(on.world.size());
  const auto all = [&](const size_t* of) { return of == nullptr ? std::span<const size_t>() : std::span(of, ranks); };
  return {all(counts), all(displs)};
}

// make(communicator, spec, options)
template <class Make>
tutti_result_t run(const char* function, tutti_comm_t comm, const CCall& call, void* stream, const Make& make) {
  return guarded([&] {
    tutti_comm& on = in_use(function, comm);
    make(on, describe(call, on).spec, CallOptions{.algorithm = on.algorithm, .order = on.order, .stream = stream});
  });
}

template <class Make>
tutti_result_t start(const char* function, tutti_comm_t comm, const CCall& call, void* stream, tutti_work_t* work,
                     const Make& make) {
  return guarded([&] {
    tutti_work_t& made = there(function, work, "work");
    made = nullptr;
    tutti_comm& on = in_use(function, comm);
    auto started = std::make_unique<tutti_work>();  // first: a call that was made must have an owner
    started->work =
        make(on, describe(call, on).spec, CallOptions{.algorithm = on.algorithm, .order = on.order, .stream = stream});
    made = started.release();
  });
}

}  // namespace

tutti_result_t tutti_all_gather_v(const void* sendbuff, void* recvbuff, const size_t* recvcounts, const size_t* displs,
                                  tutti_dtype_t dtype, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_gather, sendbuff, recvbuff, 0, dtype}, stream,
             [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
               on.world.all_gather_v(sendbuff, recvbuff, rows_of(on, recvcounts, displs), spec.dtype, how);
             });
}
tutti_result_t tutti_reduce_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                      void* recvbuff, tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm,
                                      void* stream) {
  return run(__func__, comm, {Collective::reduce_scatter, sendbuff, recvbuff, 0, dtype, op}, stream,
             [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
               on.world.reduce_scatter_v(sendbuff, rows_of(on, sendcounts, displs), recvbuff, spec.dtype, spec.op, how);
             });
}
tutti_result_t tutti_gather_v(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                              const size_t* displs, tutti_dtype_t dtype, int root, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::gather, sendbuff, recvbuff, sendcount, dtype, TUTTI_SUM, root}, stream,
             [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
               on.world.gather_v(sendbuff, sendcount, recvbuff, rows_of(on, recvcounts, displs), spec.dtype, root, how);
             });
}
tutti_result_t tutti_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs, void* recvbuff,
                               size_t recvcount, tutti_dtype_t dtype, int root, tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::scatter, sendbuff, recvbuff, recvcount, dtype, TUTTI_SUM, root}, stream,
             [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
               on.world.scatter_v(sendbuff, rows_of(on, sendcounts, displs), recvbuff, recvcount, spec.dtype, root,
                                  how);
             });
}
tutti_result_t tutti_all_to_all_v(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls, void* recvbuff,
                                  const size_t* recvcounts, const size_t* rdispls, tutti_dtype_t dtype,
                                  tutti_comm_t comm, void* stream) {
  return run(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, 0, dtype}, stream,
             [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
               on.world.all_to_all_v(sendbuff, rows_of(on, sendcounts, sdispls), recvbuff,
                                     rows_of(on, recvcounts, rdispls), spec.dtype, how);
             });
}

// --- started calls --------------------------------------------------------------------------------------------------

tutti_result_t tutti_start_all_gather_v(const void* sendbuff, void* recvbuff, const size_t* recvcounts,
                                        const size_t* displs, tutti_dtype_t dtype, tutti_comm_t comm, void* stream,
                                        tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_gather, sendbuff, recvbuff, 0, dtype}, stream, work,
               [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
                 return on.world.start_all_gather_v(sendbuff, recvbuff, rows_of(on, recvcounts, displs), spec.dtype,
                                                    how);
               });
}
tutti_result_t tutti_start_reduce_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                            void* recvbuff, tutti_dtype_t dtype, tutti_op_t op, tutti_comm_t comm,
                                            void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::reduce_scatter, sendbuff, recvbuff, 0, dtype, op}, stream, work,
               [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
                 return on.world.start_reduce_scatter_v(sendbuff, rows_of(on, sendcounts, displs), recvbuff, spec.dtype,
                                                        spec.op, how);
               });
}
tutti_result_t tutti_start_gather_v(const void* sendbuff, size_t sendcount, void* recvbuff, const size_t* recvcounts,
                                    const size_t* displs, tutti_dtype_t dtype, int root, tutti_comm_t comm,
                                    void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::gather, sendbuff, recvbuff, sendcount, dtype, TUTTI_SUM, root}, stream,
               work, [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
                 return on.world.start_gather_v(sendbuff, sendcount, recvbuff, rows_of(on, recvcounts, displs),
                                                spec.dtype, root, how);
               });
}
tutti_result_t tutti_start_scatter_v(const void* sendbuff, const size_t* sendcounts, const size_t* displs,
                                     void* recvbuff, size_t recvcount, tutti_dtype_t dtype, int root, tutti_comm_t comm,
                                     void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::scatter, sendbuff, recvbuff, recvcount, dtype, TUTTI_SUM, root}, stream,
               work, [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
                 return on.world.start_scatter_v(sendbuff, rows_of(on, sendcounts, displs), recvbuff, recvcount,
                                                 spec.dtype, root, how);
               });
}
tutti_result_t tutti_start_all_to_all_v(const void* sendbuff, const size_t* sendcounts, const size_t* sdispls,
                                        void* recvbuff, const size_t* recvcounts, const size_t* rdispls,
                                        tutti_dtype_t dtype, tutti_comm_t comm, void* stream, tutti_work_t* work) {
  return start(__func__, comm, {Collective::all_to_all, sendbuff, recvbuff, 0, dtype}, stream, work,
               [&](tutti_comm& on, const CallSpec& spec, const CallOptions& how) {
                 return on.world.start_all_to_all_v(sendbuff, rows_of(on, sendcounts, sdispls), recvbuff,
                                                    rows_of(on, recvcounts, rdispls), spec.dtype, how);
               });
}
