// The collectives, send and receive, and operators. Types, operators and streams are handed on as they are: the
// library has NCCL's numbers. What differs: a call without a stream, which is NCCL's default stream, blocks.
#include "nccl/communicator.h"

using namespace tutti::nccl;

ncclResult_t ncclAllReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                           ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_all_reduce(sendbuff, recvbuff, count, datatype, op, Inside(comm), stream));
}
ncclResult_t ncclReduce(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_reduce(sendbuff, recvbuff, count, datatype, op, root, Inside(comm), stream));
}
ncclResult_t ncclBcast(void* buff, size_t count, ncclDataType_t datatype, int root, ncclComm_t comm,
                       cudaStream_t stream) {
  return called(tutti_broadcast(buff, buff, count, datatype, root, Inside(comm), stream));
}
ncclResult_t ncclBroadcast(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                           ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_broadcast(sendbuff, recvbuff, count, datatype, root, Inside(comm), stream));
}
ncclResult_t ncclReduceScatter(const void* sendbuff, void* recvbuff, size_t recvcount, ncclDataType_t datatype,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_reduce_scatter(sendbuff, recvbuff, recvcount, datatype, op, Inside(comm), stream));
}
ncclResult_t ncclAllGather(const void* sendbuff, void* recvbuff, size_t sendcount, ncclDataType_t datatype,
                           ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_all_gather(sendbuff, recvbuff, sendcount, datatype, Inside(comm), stream));
}
ncclResult_t ncclAlltoAll(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, ncclComm_t comm,
                          cudaStream_t stream) {
  return called(tutti_all_to_all(sendbuff, recvbuff, count, datatype, Inside(comm), stream));
}
ncclResult_t ncclGather(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                        ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_gather(sendbuff, recvbuff, count, datatype, root, Inside(comm), stream));
}
ncclResult_t ncclScatter(const void* sendbuff, void* recvbuff, size_t count, ncclDataType_t datatype, int root,
                         ncclComm_t comm, cudaStream_t stream) {
  return called(tutti_scatter(sendbuff, recvbuff, count, datatype, root, Inside(comm), stream));
}
ncclResult_t ncclSend(const void* sendbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return called(tutti_send(sendbuff, count, datatype, peer, Inside(comm), stream));
}
ncclResult_t ncclRecv(void* recvbuff, size_t count, ncclDataType_t datatype, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return called(tutti_recv(recvbuff, count, datatype, peer, Inside(comm), stream));
}

ncclResult_t ncclRedOpCreatePreMulSum(ncclRedOp_t* op, void* scalar, ncclDataType_t datatype,
                                      ncclScalarResidence_t residence, ncclComm_t comm) {
  tutti_op_t made = 0;
  const ncclResult_t result =
      told(tutti_op_create_premul_sum(op != nullptr ? &made : nullptr, scalar, datatype,
                                      static_cast<tutti_scalar_residence_t>(residence), Inside(comm)));
  if (result == ncclSuccess) *op = static_cast<ncclRedOp_t>(made);
  return result;
}
ncclResult_t ncclRedOpDestroy(ncclRedOp_t op, ncclComm_t comm) { return told(tutti_op_destroy(op, Inside(comm))); }

TUTTI_NCCL_ALSO_AS_P(ncclAllReduce);
TUTTI_NCCL_ALSO_AS_P(ncclReduce);
TUTTI_NCCL_ALSO_AS_P(ncclBcast);
TUTTI_NCCL_ALSO_AS_P(ncclBroadcast);
TUTTI_NCCL_ALSO_AS_P(ncclReduceScatter);
TUTTI_NCCL_ALSO_AS_P(ncclAllGather);
TUTTI_NCCL_ALSO_AS_P(ncclAlltoAll);
TUTTI_NCCL_ALSO_AS_P(ncclGather);
TUTTI_NCCL_ALSO_AS_P(ncclScatter);
TUTTI_NCCL_ALSO_AS_P(ncclSend);
TUTTI_NCCL_ALSO_AS_P(ncclRecv);
TUTTI_NCCL_ALSO_AS_P(ncclRedOpCreatePreMulSum);
TUTTI_NCCL_ALSO_AS_P(ncclRedOpDestroy);
