// A communicator's life after joining, and what it is asked.
#include "nccl/communicator.h"

#include <chrono>
#include <thread>

using namespace tutti::nccl;

namespace {

// *to = what `comm` has there.
ncclResult_t ask(const char* function, const ncclComm* comm, int* to, int ncclComm::*what) {
  if (comm == nullptr) return refuse(ncclInvalidArgument, function, "the communicator is null");
  if (to == nullptr) return refuse(ncclInvalidArgument, function, "the pointer to the answer is null");
  *to = comm->*what;
  return ncclSuccess;
}

}  // namespace

ncclResult_t ncclCommFinalize(ncclComm_t comm) {
  const Inside inside(comm);
  const ncclResult_t result = told(tutti_comm_finalize(inside));
  if (comm != nullptr) comm->is_over = true;
  return result;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  const ncclResult_t result = told(tutti_comm_destroy(of(comm)));
  delete comm;
  return result;
}

// A call of another thread ends soon, with that error.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (comm != nullptr && !comm->is_over) tutti_comm_abort(comm->comm, "ncclCommAbort() was called");
  while (comm != nullptr && comm->inside > 0) std::this_thread::sleep_for(std::chrono::microseconds(100));
  return ncclCommDestroy(comm);
}

ncclResult_t ncclCommRevoke(ncclComm_t comm, int revokeFlags) {
  if (revokeFlags != 0) return refuse(ncclInvalidArgument, __func__, "the flags are not NCCL_REVOKE_DEFAULT");
  return told(tutti_comm_abort(Inside(comm), "ncclCommRevoke() was called"));
}

// A communicator that was finalized has nothing under way: ncclCommFinalize() has waited, and has said what was wrong.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* asyncError) {
  if (asyncError == nullptr) return refuse(ncclInvalidArgument, __func__, "the pointer to the answer is null");
  const Inside inside(comm);
  tutti_result_t failure = TUTTI_SUCCESS;
  const ncclResult_t result =
      comm != nullptr && comm->is_over ? ncclSuccess : told(tutti_comm_get_async_error(inside, &failure));
  if (result == ncclSuccess) *asyncError = static_cast<ncclResult_t>(failure);
  return result;
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int* count) { return ask(__func__, comm, count, &ncclComm::size); }
ncclResult_t ncclCommUserRank(const ncclComm_t comm, int* rank) { return ask(__func__, comm, rank, &ncclComm::rank); }
ncclResult_t ncclCommCuDevice(const ncclComm_t comm, int* device) {
  return ask(__func__, comm, device, &ncclComm::device);
}

TUTTI_NCCL_ALSO_AS_P(ncclCommFinalize);
TUTTI_NCCL_ALSO_AS_P(ncclCommDestroy);
TUTTI_NCCL_ALSO_AS_P(ncclCommAbort);
TUTTI_NCCL_ALSO_AS_P(ncclCommRevoke);
TUTTI_NCCL_ALSO_AS_P(ncclCommGetAsyncError);
TUTTI_NCCL_ALSO_AS_P(ncclCommCount);
TUTTI_NCCL_ALSO_AS_P(ncclCommUserRank);
TUTTI_NCCL_ALSO_AS_P(ncclCommCuDevice);
